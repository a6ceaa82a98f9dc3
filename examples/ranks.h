// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// How the ranks of an example come to share a communicator. Whatever started them told each its number in the environment
// (anyacl run -n, torchrun: RANK and WORLD_SIZE; mpirun and srun have names of their own); the root info goes from rank 0 to
// the others over MASTER_ADDR:MASTER_PORT. Whoever has the root info can take part, so use this where you trust the network;
// a program that uses MPI anyway sends it with MPI_Bcast.
#ifndef ANYACL_EXAMPLES_RANKS_H_
#define ANYACL_EXAMPLES_RANKS_H_

#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <initializer_list>
#include <string>

#include "example.h"
#include "hccl/hccl.h"

inline void Fail(const char* what) {
  std::perror(what);
  std::exit(1);
}

// The first of these variables that is set, or the fallback.
inline std::string Setting(std::initializer_list<const char*> names, const char* fallback) {
  for (const char* name : names) {
    const char* value = std::getenv(name);
    if (value != nullptr && *value != '\0') return value;
  }
  return fallback;
}

struct Place {
  uint32_t rank;
  uint32_t ranks;
  int32_t device;
};

// ranks is 0 when nobody started this process as a rank.
inline Place PlaceFromEnvironment() {
  const std::string rank =
      Setting({"RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID"}, "0");
  const std::string ranks =
      Setting({"WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS"}, "0");
  const std::string local =
      Setting({"LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "SLURM_LOCALID"}, "0");
  uint32_t devices = 0;
  CHECK(aclrtGetDeviceCount(&devices));
  return Place{static_cast<uint32_t>(std::stoul(rank)), static_cast<uint32_t>(std::stoul(ranks)),
               static_cast<int32_t>(std::stoul(local) % devices)};
}

inline void SendAll(int to, const char* bytes, size_t count) {
  while (count > 0) {
    const ssize_t sent = send(to, bytes, count, MSG_NOSIGNAL);
    if (sent <= 0) Fail("sending the root info");
    bytes += sent;
    count -= static_cast<size_t>(sent);
  }
}

inline void ReceiveAll(int from, char* bytes, size_t count) {
  while (count > 0) {
    const ssize_t got = recv(from, bytes, count, 0);
    if (got <= 0) Fail("receiving the root info");
    bytes += got;
    count -= static_cast<size_t>(got);
  }
}

// Rank 0 makes the root info; all have it afterwards.
inline void ShareRootInfo(const Place& place, HcclRootInfo* info) {
  if (place.rank == 0) CHECK(HcclGetRootInfo(info));
  if (place.ranks == 1) return;
  const std::string host = Setting({"MASTER_ADDR"}, "127.0.0.1");
  std::string port = Setting({"MASTER_PORT"}, "29500");
  if (!Setting({"TORCHELASTIC_RUN_ID"}, "").empty())
    port = std::to_string(std::stoi(port) + 1);  // torchrun has that one
  addrinfo wanted = {}, *found = nullptr;
  wanted.ai_socktype = SOCK_STREAM;
  if (getaddrinfo(host.c_str(), port.c_str(), &wanted, &found) != 0) Fail("MASTER_ADDR");
  if (place.rank == 0) {
    const int listener = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const int yes = 1;
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
    if (bind(listener, found->ai_addr, found->ai_addrlen) != 0 || listen(listener, 64) != 0)
      Fail("MASTER_PORT");
    for (uint32_t other = 1; other < place.ranks; ++other) {
      const int guest = accept(listener, nullptr, nullptr);
      if (guest < 0) Fail("a rank that comes");
      SendAll(guest, info->internal, sizeof(info->internal));
      close(guest);
    }
    close(listener);
  } else {
    int root = -1;
    for (int attempt = 0; root < 0; ++attempt) {  // rank 0 may be later
      root = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
      if (connect(root, found->ai_addr, found->ai_addrlen) == 0) break;
      close(root);
      root = -1;
      if (attempt == 600) Fail("rank 0, at MASTER_ADDR:MASTER_PORT");
      usleep(100000);
    }
    ReceiveAll(root, info->internal, sizeof(info->internal));
    close(root);
  }
  freeaddrinfo(found);
}

#endif  // ANYACL_EXAMPLES_RANKS_H_
