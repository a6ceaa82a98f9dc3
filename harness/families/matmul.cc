// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
#include <algorithm>

#include "harness/family.h"

namespace anyacl::harness {
namespace {

// Where matrix `index` of an operand begins, whose batch dims are broadcast to `batch`.
int64_t MatrixAt(const Host& x, const Dims& batch, int64_t index) {
  int64_t offset = 0, step = x.dims[x.dims.rank() - 1] * x.dims[x.dims.rank() - 2];
  for (int axis = batch.rank() - 1, mine = x.dims.rank() - 3; axis >= 0; --axis, --mine) {
    const int64_t at = index % batch[axis];
    index /= batch[axis];
    if (mine < 0) continue;
    if (x.dims[mine] != 1) offset += at * step;
    step *= x.dims[mine];
  }
  return offset;
}

Host AsMatrix(Host x, bool is_row) {
  if (x.dims.rank() == 1) x.dims = is_row ? Dims{1, x.dims[0]} : Dims{x.dims[0], 1};
  return x;
}

struct Product {
  Checked<Real> value;
  Checked<Real> size;  // sum of magnitudes
};

Product Multiply(const Host& first, const Host& second, const Dims& batch) {
  const Host a = AsMatrix(first, true), b = AsMatrix(second, false);
  const int64_t m = a.dims[a.dims.rank() - 2], k = a.dims[a.dims.rank() - 1], n = b.dims[b.dims.rank() - 1];
  Product product;
  for (int64_t index = 0; index < Numel(batch); ++index) {
    const int64_t left = MatrixAt(a, batch, index), right = MatrixAt(b, batch, index);
    for (int64_t row = 0; row < m; ++row) {
      for (int64_t column = 0; column < n; ++column) {
        Real sum = 0, size = 0;
        for (int64_t i = 0; i < k; ++i) {
          const Real term = a.real(left + row * k + i) * b.real(right + i * n + column);
          sum += term;
          size += std::fabs(term);
        }
        product.value.push_back(sum);
        product.size.push_back(size);
      }
    }
  }
  return product;
}

// A sum of k FLOAT terms in any order: each step rounds at most the sum of magnitudes once.
Real Slack(Real size, int64_t k) { return size * 0x1p-24L * static_cast<Real>(k + 2); }

Dims BatchOf(const Host& a, const Host& b) {
  const Host& longer = a.dims.rank() >= b.dims.rank() ? a : b;
  Dims batch;
  for (int i = 0; i + 2 < longer.dims.rank(); ++i) {
    const auto dim = [&](const Host& x) {
      const int mine = i - (longer.dims.rank() - x.dims.rank());
      return mine < 0 ? int64_t{1} : x.dims[mine];
    };
    batch.push_back(dim(a) == 1 ? dim(b) : dim(a));
  }
  return batch;
}

void OracleProduct(HostCall& call, const char* second) {
  const Host &a = call.In("self"), &b = call.In(second);
  Host& out = call.Out("out");
  const Product product = Multiply(a, b, BatchOf(a, b));
  for (int64_t i = 0; i < out.size(); ++i) {
    out[i] = product.value[i];
    out.slack.push_back(Slack(product.size[i], a.dims[a.dims.rank() - 1]));
  }
}
void OracleMatmul(HostCall& call) { OracleProduct(call, "mat2"); }
void OracleMv(HostCall& call) { OracleProduct(call, "vec"); }

void OracleAdded(HostCall& call, const char* self_name, const char* out_name, const char* first, const char* second, bool sums) {
  const Host &a = call.In(first), &b = call.In(second), self = call.In(self_name);
  const Dims batch = BatchOf(a, b);
  const Product product = Multiply(a, b, batch);
  const Real alpha = call.Scalar("alpha").real(), beta = call.Scalar("beta").real();
  Host& out = call.Out(out_name);
  const int64_t k = a.dims[a.dims.rank() - 1];
  for (int64_t i = 0; i < out.size(); ++i) {
    Real value = 0, size = 0;
    for (int64_t index = 0; index < (sums ? Numel(batch) : 1); ++index) {
      value += product.value[index * out.size() + i];
      size += product.size[index * out.size() + i];
    }
    const Real added = beta == 0 ? 0 : beta * self.Broadcast(out.dims, i).real();
    out[i] = added + (alpha == 0 ? 0 : alpha * value);
    out.slack.push_back(std::fabs(alpha) * Slack(size, k * (sums ? Numel(batch) : 1)) +
                        (std::fabs(added) + std::fabs(alpha * value)) * 0x1p-22L);
  }
}
void OracleAddmm(HostCall& call) { OracleAdded(call, "self", "out", "mat1", "mat2", false); }
void OracleInplaceAddmm(HostCall& call) { OracleAdded(call, "selfRef", "selfRef", "mat1", "mat2", false); }
void OracleBaddbmm(HostCall& call) { OracleAdded(call, "self", "out", "batch1", "batch2", false); }
void OracleInplaceBaddbmm(HostCall& call) { OracleAdded(call, "selfRef", "selfRef", "batch1", "batch2", false); }
void OracleAddbmm(HostCall& call) { OracleAdded(call, "self", "out", "batch1", "batch2", true); }
void OracleInplaceAddbmm(HostCall& call) { OracleAdded(call, "selfRef", "selfRef", "batch1", "batch2", true); }

constexpr DType kTypes[] = {DType::kF32, DType::kF16, DType::kBF16};

void SampleMm(Calls& calls) {
  for (DType t : kTypes) {
    for (const auto& [m, k, n] : {std::tuple{3, 5, 4}, {1, 1, 1}, {13, 300, 37}, {100, 17, 70}, {4, 0, 3}, {0, 4, 3}}) {
      calls.Add({In(t, {m, k}), In(t, {k, n}), Out(t, {m, n}), Int(0)});
    }
    calls.Add({In(t, {3, 5}), In(DType::kF32, {5, 4}), Out(DType::kF16, {3, 4}), Int(3)});
  }
  calls.Add({In(DType::kF32, {110, 260}), In(DType::kF32, {260, 290}), Out(DType::kF32, {110, 290}), Int(0)});
}

void SampleMatmul(Calls& calls) {
  for (DType t : kTypes) {
    calls.Add({In(t, {5}), In(t, {5}), Out(t, {}), Int(0)});
    calls.Add({In(t, {5}), In(t, {5, 4}), Out(t, {4}), Int(0)});
    calls.Add({In(t, {3, 5}), In(t, {5}), Out(t, {3}), Int(0)});
    calls.Add({In(t, {2, 1, 3, 5}), In(t, {7, 5, 4}), Out(t, {2, 7, 3, 4}), Int(1)});
    calls.Add({In(t, {2, 3, 5}), In(t, {5}), Out(t, {2, 3}), Int(4)});
    calls.Add({In(t, {2, 3, 0}), In(t, {0, 4}), Out(t, {2, 3, 4}), Int(2)});
  }
}

void SampleBatchMatMul(Calls& calls) {
  for (DType t : kTypes) {
    calls.Add({In(t, {4, 3, 5}), In(t, {4, 5, 6}), Out(t, {4, 3, 6}), Int(0)});
    calls.Add({In(t, {1, 3, 5}), In(t, {4, 5, 6}), Out(t, {4, 3, 6}), Int(0)});
    calls.Add({In(t, {0, 3, 5}), In(t, {0, 5, 6}), Out(t, {0, 3, 6}), Int(0)});
  }
}

void SampleMv(Calls& calls) {
  for (DType t : kTypes) {
    calls.Add({In(t, {3, 5}), In(t, {5}), Out(t, {3}), Int(0)});
    calls.Add({In(t, {70, 300}), In(t, {300}), Out(t, {70}), Int(0)});
    calls.Add({In(t, {3, 0}), In(t, {0}), Out(t, {3}), Int(0)});
  }
}

void SampleAdded(Calls& calls, bool in_place, bool batched, bool sums) {
  for (DType t : kTypes) {
    for (const auto& [beta, alpha] : {std::pair{1.0, 1.0}, {0.5, -2.0}, {0.0, 1.0}, {1.0, 0.0}}) {
      for (int64_t k : {5, 0}) {
        const Dims a = batched ? Dims{2, 3, k} : Dims{3, k}, b = batched ? Dims{2, k, 4} : Dims{k, 4};
        const Dims out = batched && !sums ? Dims{2, 3, 4} : Dims{3, 4};
        std::vector<TestArg> args = {In(t, in_place ? out : Dims{4}), In(t, a), In(t, b), Num(DType::kF64, beta), Num(DType::kI64, alpha)};
        if (in_place) args[0] = In(t, out);
        else args.push_back(Out(t, out));
        args.push_back(Int(0));
        calls.Add(std::move(args));
      }
    }
  }
}
void SampleAddmm(Calls& calls) {
  SampleAdded(calls, false, false, false);
  calls.Add({In(DType::kF32, {3, 4}), In(DType::kBF16, {3, 5}), In(DType::kBF16, {5, 4}), Num(DType::kF32, 1), Num(DType::kF32, 1),
             Out(DType::kF32, {3, 4}), Int(0)}).same = {{5, 0}};
}
void SampleInplaceAddmm(Calls& calls) { SampleAdded(calls, true, false, false); }
void SampleBaddbmm(Calls& calls) { SampleAdded(calls, false, true, false); }
void SampleInplaceBaddbmm(Calls& calls) { SampleAdded(calls, true, true, false); }
void SampleAddbmm(Calls& calls) { SampleAdded(calls, false, true, true); }
void SampleInplaceAddbmm(Calls& calls) { SampleAdded(calls, true, true, true); }

}  // namespace

std::span<const Subject> MatmulSubjects() {
  static const Subject subjects[] = {{"aclnnMm", SampleMm, OracleMatmul},
                                     {"aclnnMatmul", SampleMatmul, OracleMatmul},
                                     {"aclnnBatchMatMul", SampleBatchMatMul, OracleMatmul},
                                     {"aclnnMv", SampleMv, OracleMv},
                                     {"aclnnAddmm", SampleAddmm, OracleAddmm},
                                     {"aclnnInplaceAddmm", SampleInplaceAddmm, OracleInplaceAddmm},
                                     {"aclnnBaddbmm", SampleBaddbmm, OracleBaddbmm},
                                     {"aclnnInplaceBaddbmm", SampleInplaceBaddbmm, OracleInplaceBaddbmm},
                                     {"aclnnAddbmm", SampleAddbmm, OracleAddbmm},
                                     {"aclnnInplaceAddbmm", SampleInplaceAddbmm, OracleInplaceAddbmm}};
  return subjects;
}

}  // namespace anyacl::harness
