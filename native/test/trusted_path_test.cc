// Whose files may be executed. As root it makes files of other users.
#include "base/trusted_path.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "expect.h"

using ncclrun::distrustOf;
using ncclrun::distrustOfAll;
using ncclrun::executablePath;

namespace {

constexpr uid_t kStranger = 12345;

void expectWords(const std::string& sentence, const std::string& words) {
  if (sentence.find(words) == std::string::npos) failTest(__FILE__, __LINE__, "\"" + sentence + "\" lacks " + words);
}

void touch(const std::string& path) {
  std::FILE* file = std::fopen(path.c_str(), "w");
  EXPECT(file != nullptr);
  std::fclose(file);
}

}  // namespace

int main() {
  umask(022);
  char name[] = "/tmp/ncclrun-trust-XXXXXX";
  EXPECT(mkdtemp(name) != nullptr);
  const std::string top = name;
  const std::string directory = top + "/directory";
  const std::string file = directory + "/file";
  EXPECT(mkdir(directory.c_str(), 0755) == 0);
  touch(file);

  // Below /tmp, which is sticky, what is ours is ours.
  EXPECT(distrustOf(file).empty());
  EXPECT(distrustOfAll(directory).empty());
  expectWords(distrustOf(top + "/missing"), "No such file");

  chmod(file.c_str(), 0646);
  expectWords(distrustOf(file), "others may write to " + file + " (mode 646)");
  expectWords(distrustOfAll(directory), "others may write to " + file);
  chmod(file.c_str(), 0644);
  chmod(directory.c_str(), 0757);
  expectWords(distrustOf(file), "others may write to " + directory + " (mode 757)");
  chmod(directory.c_str(), 01777);
  EXPECT(distrustOf(file).empty());
  expectWords(distrustOfAll(directory), "others may write to " + directory + " (mode 1777)");
  chmod(directory.c_str(), 0755);

  std::string why;
  EXPECT(executablePath(file, why) == file && why.empty());
  EXPECT(executablePath(top + "/missing", why).empty());
  expectWords(why, "No such file");
  chmod(file.c_str(), 0646);
  EXPECT(executablePath(file, why).empty());
  expectWords(why, file + " is not executed, it may be another user's: others may write to " + file);
  chmod(file.c_str(), 0644);

  if (geteuid() == 0) {
    EXPECT(chown(directory.c_str(), 0, kStranger) == 0);
    chmod(directory.c_str(), 0775);
    expectWords(distrustOf(file), "group id 12345 may write to " + directory + " (mode 775)");
    EXPECT(chown(directory.c_str(), 0, 0) == 0);
    EXPECT(distrustOf(file).empty());  // root's own group
    chmod(directory.c_str(), 0755);

    EXPECT(chown(file.c_str(), kStranger, kStranger) == 0);
    expectWords(distrustOf(file), file + " belongs to user id 12345");
    expectWords(distrustOfAll(directory), file + " belongs to user id 12345");
    const std::string link = top + "/link";
    EXPECT(symlink(file.c_str(), link.c_str()) == 0);
    expectWords(distrustOf(link), file + " belongs to user id 12345");
    EXPECT(chown(file.c_str(), 0, 0) == 0 && distrustOf(link).empty());
    EXPECT(lchown(link.c_str(), kStranger, kStranger) == 0);
    expectWords(distrustOf(link), link + " belongs to user id 12345");
    EXPECT(unlink(link.c_str()) == 0);
  }
  EXPECT(unlink(file.c_str()) == 0 && rmdir(directory.c_str()) == 0 && rmdir(top.c_str()) == 0);
  return 0;
}
