#!/bin/sh
# Every rank says who it is. A shell script needs nothing but the variables that ncclrun sets.
#
#     npx ncclrun -n 4 examples/hello.sh
echo "${GREETING:-hello} from rank $RANK of $WORLD_SIZE, number $LOCAL_RANK of $LOCAL_WORLD_SIZE on $(uname -n)"
