/* The peers' side of "launch to wired": everything MPI does from start to a working communicator, and the end. */
#include <mpi.h>

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  return MPI_Finalize();
}
