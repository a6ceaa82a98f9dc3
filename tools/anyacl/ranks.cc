// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// anyacl run -n N: a program as N ranks on this machine, until all have ended or one has failed. Each is a process group of
// its own, so that what it started is stopped with it.
#include "ranks.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "library.h"

namespace anyacl::tool {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds kGrace{5};  // between asking ranks to end and ending them
constexpr size_t kLongLine = 64 * 1024;    // printed before its end has come
constexpr int kNotStarted = 127;           // as a shell's

[[noreturn]] void SystemProblem(const char* what) {
  throw std::runtime_error(fmt::format("{}: {}", what, std::strerror(errno)));
}

// Lines of one stream of one rank, each behind "[rank] ".
class TaggedOutput {
 public:
  TaggedOutput(int from, FILE* to, int rank)
      : from_(from), to_(to), tag_(fmt::format("[{}] ", rank)) {}

  int fd() const { return from_; }
  bool is_open() const { return from_ >= 0; }

  // What there is now.
  void Pass() {
    char bytes[16 * 1024];
    const ssize_t count = read(from_, bytes, sizeof(bytes));
    if (count < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (count <= 0) return Close();
    line_.append(bytes, static_cast<size_t>(count));
    size_t begin = 0;
    for (size_t end; (end = line_.find('\n', begin)) != std::string::npos; begin = end + 1) {
      Print(std::string_view(line_).substr(begin, end - begin));
    }
    line_.erase(0, begin);
    if (line_.size() > kLongLine) Print(std::exchange(line_, {}));
    std::fflush(to_);
  }
  // All that is left, without waiting for whoever holds the other end still.
  void Finish() {
    pollfd ready = {from_, POLLIN, 0};
    while (is_open() && poll(&ready, 1, 0) > 0) Pass();
    if (is_open()) Close();
  }

 private:
  void Print(std::string_view line) { fmt::print(to_, "{}{}\n", tag_, line); }
  void Close() {
    if (!line_.empty()) Print(std::exchange(line_, {}));
    std::fflush(to_);
    close(std::exchange(from_, -1));
  }

  int from_;
  FILE* const to_;
  const std::string tag_;
  std::string line_;
};

sigset_t SignalsOfInterest() {
  sigset_t signals;
  sigemptyset(&signals);
  for (const int one : {SIGCHLD, SIGINT, SIGTERM, SIGHUP}) sigaddset(&signals, one);
  return signals;
}

// A port that nobody has now.
std::string FreePort() {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  auto* const generic = reinterpret_cast<sockaddr*>(&address);
  if (fd < 0 || bind(fd, generic, size) || getsockname(fd, generic, &size))
    SystemProblem("no port for the ranks");
  close(fd);
  return std::to_string(ntohs(address.sin_port));
}

void SetUnlessSet(const char* name, const std::string& value) {
  const char* const before = std::getenv(name);
  if (!before || !*before) setenv(name, value.c_str(), 1);
}

class Ranks {
 public:
  Ranks(const std::vector<std::string>& command, int count)
      : ranks_(static_cast<size_t>(count)), command_(command) {}

  int Run() {
    const sigset_t signals = SignalsOfInterest();
    sigprocmask(SIG_BLOCK, &signals, &mask_);
    news_ = signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
    if (news_ < 0) SystemProblem("no signals can be received");
    SetCommonEnvironment();
    try {
      for (int rank = 0; rank < static_cast<int>(ranks_.size()); ++rank) Start(rank);
    } catch (const std::exception&) {
      Signal(SIGKILL);
      throw;
    }
    while (running_ > 0) Wait();
    for (TaggedOutput& output : outputs_) output.Finish();
    return result_;
  }

 private:
  struct Rank {
    pid_t process = -1;
    bool is_running = false;
  };

  // Of one machine: ranks share its cores, and each finds a device of its own.
  void SetCommonEnvironment() const {
    const int count = static_cast<int>(ranks_.size());
    const std::string text = std::to_string(count);
    setenv("WORLD_SIZE", text.c_str(), 1);
    setenv("LOCAL_WORLD_SIZE", text.c_str(), 1);
    setenv("MASTER_ADDR", "127.0.0.1", 1);
    setenv("MASTER_PORT", FreePort().c_str(), 1);
    SetUnlessSet("ANYACL_DEVICES", text);
    SetUnlessSet("ANYACL_THREADS", std::to_string(std::max(1, Library().threads() / count)));
  }

  void Start(int rank) {
    int out[2], err[2];
    if (pipe2(out, O_CLOEXEC) || pipe2(err, O_CLOEXEC)) SystemProblem("no pipe for a rank");
    setenv("RANK", std::to_string(rank).c_str(), 1);
    setenv("LOCAL_RANK", std::to_string(rank).c_str(), 1);
    const pid_t launcher = getpid();
    const pid_t process = fork();
    if (process < 0) SystemProblem("a rank cannot be started");
    if (process == 0) Become(rank, out[1], err[1], launcher);
    setpgid(process, process);  // both sides, because nobody knows who comes first
    close(out[1]);
    close(err[1]);
    ranks_[static_cast<size_t>(rank)] = {process, true};
    ++running_;
    outputs_.emplace_back(out[0], stdout, rank);
    outputs_.emplace_back(err[0], stderr, rank);
  }

  // In the child.
  [[noreturn]] void Become(int rank, int out, int err, pid_t launcher) const {
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != launcher) _exit(1);
    dup2(out, STDOUT_FILENO);
    dup2(err, STDERR_FILENO);
    if (rank > 0) {
      const int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
      dup2(nothing, STDIN_FILENO);
    }
    sigprocmask(SIG_SETMASK, &mask_, nullptr);
    std::vector<char*> words;
    for (const std::string& word : command_) words.push_back(const_cast<char*>(word.c_str()));
    words.push_back(nullptr);
    execvp(words[0], words.data());
    const std::string text =
        fmt::format("anyacl: {} cannot be run: {}\n", command_[0], std::strerror(errno));
    (void)!write(STDERR_FILENO, text.data(), text.size());
    _exit(kNotStarted);
  }

  // Until something was printed, a rank has ended or time is up.
  void Wait() {
    std::vector<pollfd> wanted = {{news_, POLLIN, 0}};
    for (const TaggedOutput& output : outputs_)
      wanted.push_back({output.fd(), POLLIN, 0});  // closed ones are negative
    int limit = -1;
    if (is_stopping_) {
      const auto left =
          std::chrono::ceil<std::chrono::milliseconds>(kill_at_ - Clock::now()).count();
      limit = static_cast<int>(std::max<int64_t>(left, 0));
    }
    poll(wanted.data(), wanted.size(), limit);
    for (size_t i = 0; i < outputs_.size(); ++i) {
      if (outputs_[i].is_open() && wanted[i + 1].revents) outputs_[i].Pass();
    }
    signalfd_siginfo info;
    while (read(news_, &info, sizeof(info)) == sizeof(info)) {
      if (info.ssi_signo != SIGCHLD) Stop(128 + static_cast<int>(info.ssi_signo));
    }
    Reap();
    if (is_stopping_ && Clock::now() >= kill_at_) {
      Signal(SIGKILL);
      kill_at_ = Clock::time_point::max() - std::chrono::hours(1);
    }
  }

  void Reap() {
    for (size_t rank = 0; rank < ranks_.size(); ++rank) {
      int status = 0;
      if (!ranks_[rank].is_running || waitpid(ranks_[rank].process, &status, WNOHANG) <= 0)
        continue;
      ranks_[rank].is_running = false;
      --running_;
      if (WIFEXITED(status) && WEXITSTATUS(status) == 0) continue;
      if (!is_stopping_) Report(static_cast<int>(rank), status);
      Stop(WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
    }
  }

  void Report(int rank, int status) const {
    const std::string how = WIFEXITED(status)
                                ? fmt::format("ended with status {}", WEXITSTATUS(status))
                                : fmt::format("was ended by signal {} ({})", WTERMSIG(status),
                                              strsignal(WTERMSIG(status)));
    fmt::print(stderr, "anyacl: rank {} {}{}\n", rank, how,
               running_ > 0 ? "; the others are stopped" : "");
  }

  // The first reason counts.
  void Stop(int result) {
    if (std::exchange(is_stopping_, true)) return;
    result_ = result;
    kill_at_ = Clock::now() + kGrace;
    Signal(SIGTERM);
  }

  void Signal(int signal) const {
    for (const Rank& rank : ranks_) {
      if (rank.is_running) kill(-rank.process, signal);
    }
  }

  std::vector<Rank> ranks_;
  const std::vector<std::string>& command_;
  std::vector<TaggedOutput> outputs_;
  sigset_t mask_ = {};  // as the ranks shall have it
  int news_ = -1;
  int running_ = 0;
  int result_ = 0;
  bool is_stopping_ = false;
  Clock::time_point kill_at_;
};

}  // namespace

int RunRanks(const std::vector<std::string>& command, int count) {
  return Ranks(command, count).Run();
}

}  // namespace anyacl::tool
