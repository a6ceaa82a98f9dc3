// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// A contract for readers: text, Markdown, JSON. The output depends on the table alone, never on the machine.
#ifndef ANYACL_CONTRACT_RENDER_H_
#define ANYACL_CONTRACT_RENDER_H_

#include <span>
#include <string>

#include "contract/contract.h"

namespace anyacl::contract {

// Names of an operator's kernels on one backend, best first.
struct BackendKernels {
  std::string backend;
  std::vector<std::string> kernels;
};

// `header`: the public one that declares the operator, "aclnnop/aclnn_add.h".
std::string RenderText(const Contract& contract, std::span<const BackendKernels> kernels);
std::string RenderMarkdown(const Contract& contract, const char* header, std::span<const BackendKernels> kernels);
std::string RenderJson(const Contract& contract, const char* header, std::span<const BackendKernels> kernels);

}  // namespace anyacl::contract

#endif  // ANYACL_CONTRACT_RENDER_H_
