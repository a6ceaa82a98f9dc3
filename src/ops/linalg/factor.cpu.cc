// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// A row-major matrix is its transpose, column by column: what the kernels leave to LAPACK is often the transposed question.
#include "ops/linalg/factor.h"

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstddef>
#include <cstring>
#include <limits>
#include <type_traits>

#include "cpu/kernels.h"
#include "cpu/parallel.h"
#include "ops/linalg/lapack.cpu.h"

// What LAPACK wants from whoever links it. Its own version of the first ones prints and ends the process; the last would bring
// the whole Fortran library along (docs/decisions/0010).
extern "C" {

// Told of arguments that LAPACK does not take; it returns to us with info < 0 behind that.
void xerbla_(const char*, const int*, size_t) {}
void xerbla_array_(const char*, const int*, const int*, size_t) {}

// to = one // other
void _gfortran_concat_string(size_t to_length, char* to, size_t length, const char* one, size_t other_length, const char* other) {
  const size_t first = std::min(length, to_length), second = std::min(other_length, to_length - first);
  std::memcpy(to, one, first);
  std::memcpy(to + first, other, second);
  std::memset(to + first + second, ' ', to_length - first - second);
}

}  // extern "C"

namespace anyacl::linalg {
namespace {

using pointwise::Compute;

constexpr int64_t kBlock = 64;                    // columns that LAPACK takes at a time, at most
constexpr int64_t kRoom = int64_t{64} << 20;      // bytes for the matrices that are worked on at a time
constexpr int64_t kMostTasks = 64;
constexpr int64_t kLongest = int64_t{1} << 24;    // of a matrix: LAPACK counts with 32 bits
constexpr int64_t kMostValues = int64_t{1} << 14; // singular ones: room for their vectors is counted so, too

template <class T>
struct RealOf {
  using Type = T;
};
template <class T>
struct RealOf<std::complex<T>> {
  using Type = T;
};
template <class T>
using Real = typename RealOf<T>::Type;
template <class T>
constexpr bool kIsComplex = !std::is_same_v<T, Real<T>>;

// Calls visit(T()) for the compute type.
template <class Visit>
auto WithType(Compute compute, const Visit& visit) {
  switch (compute) {
    case Compute::kDouble:
      return visit(double());
    case Compute::kComplex:
      return visit(C64());
    case Compute::kDoubleComplex:
      return visit(C128());
    default:
      return visit(float());
  }
}

bool HasType(Compute compute) { return compute != Compute::kInt && compute != Compute::kUnsigned; }

template <class T>
T Nan() {
  const auto nan = std::numeric_limits<Real<T>>::quiet_NaN();
  if constexpr (kIsComplex<T>) return {nan, nan};
  else return nan;
}

template <class T>
void FillNan(T* to, int64_t count) {
  if (to) std::fill_n(to, count, Nan<T>());
}

template <class T>
T* At(void* array, int64_t offset) {
  return array ? static_cast<T*>(array) + offset : nullptr;
}
template <class T>
const T* At(const void* array, int64_t offset) {
  return array ? static_cast<const T*>(array) + offset : nullptr;
}

// Pieces of a task's scratch memory. Without memory: how much they are together.
class Room {
 public:
  explicit Room(void* start) : start_(static_cast<unsigned char*>(start)) {}
  template <class T>
  T* Take(int64_t count) {
    unsigned char* const piece = start_ ? start_ + bytes_ : nullptr;
    bytes_ += cpu::CeilDiv(count * static_cast<int64_t>(sizeof(T)), 64) * 64;
    return reinterpret_cast<T*>(piece);
  }
  int64_t bytes() const { return bytes_; }

 private:
  unsigned char* start_;
  int64_t bytes_ = 0;
};

// By shape alone; `steps` is how much there is to do for a matrix.
int64_t TasksFor(int64_t batch, double steps, int64_t bytes) {
  const double wanted = std::ceil(static_cast<double>(batch) * steps / static_cast<double>(cpu::kTask));
  const int64_t fits = std::max<int64_t>(1, kRoom / std::max<int64_t>(1, bytes));
  return std::max<int64_t>(1, std::min({static_cast<int64_t>(std::min(wanted, 1e6)), batch, fits, kMostTasks}));
}

// Calls visit(matrix, its task's memory) for every matrix.
template <class Visit>
void ForEachMatrix(int64_t batch, int64_t tasks, void* scratch, int64_t bytes, const Visit& visit) {
  cpu::ParallelFor(tasks, [&](int64_t task) {
    unsigned char* const room = static_cast<unsigned char*>(scratch) + task * bytes;
    for (int64_t i = batch * task / tasks; i < batch * (task + 1) / tasks; ++i) visit(i, room);
  });
}

double Cube(int64_t n) { return static_cast<double>(n) * static_cast<double>(n) * static_cast<double>(n); }

// ---- Inverse --------------------------------------------------------------------------------------------------------

template <class T>
struct InverseRoom : Room {
  InverseRoom(int64_t n, void* start) : Room(start), lwork(n * std::min(n, kBlock)), pivots(Take<int>(n)), work(Take<T>(lwork)) {}
  int64_t lwork;
  int* pivots;
  T* work;
};

template <class T>
int64_t InverseTasks(const InverseParams& p) {
  return TasksFor(p.batch, Cube(p.n), InverseRoom<T>(p.n, nullptr).bytes());
}

template <class T>
void Inverse(const InverseParams& p) {
  const int n = static_cast<int>(p.n);
  const int64_t size = p.n * p.n, bytes = InverseRoom<T>(p.n, nullptr).bytes();
  ForEachMatrix(p.batch, InverseTasks<T>(p), p.scratch, bytes, [&](int64_t i, void* start) {
    const InverseRoom<T> room(p.n, start);
    T* const out = At<T>(p.out, i * size);
    std::copy_n(At<T>(p.a, i * size), size, out);
    if (Getrf(n, out, room.pivots) != 0 || Getri(n, out, room.pivots, room.work, static_cast<int>(room.lwork)) != 0) FillNan(out, size);
  });
}

void RunInverse(const InverseParams& p) {
  WithType(p.compute, [&](auto zero) { Inverse<decltype(zero)>(p); });
}
int64_t InverseScratch(const InverseParams& p) {
  return WithType(p.compute, [&](auto zero) {
    using T = decltype(zero);
    return InverseTasks<T>(p) * InverseRoom<T>(p.n, nullptr).bytes();
  });
}
bool FitsInverse(const InverseParams& p) { return HasType(p.compute) && p.n <= kLongest; }

// ---- Determinants ---------------------------------------------------------------------------------------------------

template <class T>
T SignOf(T x) {
  if constexpr (kIsComplex<T>) return x == T(0) ? x : x / std::abs(x);
  else return static_cast<T>((x > 0) - (x < 0));
}

int64_t PivotBytes(int64_t n) { return cpu::CeilDiv(n * static_cast<int64_t>(sizeof(int)), 64) * 64; }

template <class T>
void Determinant(const DeterminantParams& p, int64_t i, int* pivots) {
  T* const a = At<T>(p.a, i * p.n * p.n);
  T sign = 1;
  double log = 0;
  if (p.n > 0) Getrf(static_cast<int>(p.n), a, pivots);  // that it is singular shows on the diagonal
  for (int64_t k = 0; k < p.n; ++k) {
    const T pivot = a[k * p.n + k];
    sign *= SignOf(pivot);
    if (pivots[k] != k + 1) sign = -sign;
    log += std::log(static_cast<double>(std::abs(pivot)));
  }
  T* const out = At<T>(p.log, i);
  *out = static_cast<T>(static_cast<Real<T>>(log));
  if (p.sign) {
    *At<T>(p.sign, i) = sign;
  } else if constexpr (kIsComplex<T>) {
    *out = T(out->real(), sign == T(0) ? 0 : std::arg(sign));
  } else if (sign < 0) {
    *out = Nan<T>();
  }
}

int64_t DeterminantTasks(const DeterminantParams& p) { return TasksFor(p.batch, Cube(p.n), PivotBytes(p.n)); }

void RunDeterminant(const DeterminantParams& p) {
  WithType(p.compute, [&](auto zero) {
    ForEachMatrix(p.batch, DeterminantTasks(p), p.scratch, PivotBytes(p.n),
                  [&](int64_t i, void* room) { Determinant<decltype(zero)>(p, i, static_cast<int*>(room)); });
  });
}
int64_t DeterminantScratch(const DeterminantParams& p) { return DeterminantTasks(p) * PivotBytes(p.n); }
bool FitsDeterminant(const DeterminantParams& p) { return HasType(p.compute) && p.n <= kLongest; }

// ---- Cholesky -------------------------------------------------------------------------------------------------------

template <class T>
void Cholesky(const CholeskyParams& p) {
  const int64_t size = p.n * p.n;
  ForEachMatrix(p.batch, TasksFor(p.batch, Cube(p.n) / 3, 0), nullptr, 0, [&](int64_t i, void*) {
    const T* const a = At<T>(p.a, i * size);
    T* const out = At<T>(p.out, i * size);
    for (int64_t row = 0; row < p.n; ++row) {
      const int64_t first = p.upper ? row : 0, last = p.upper ? p.n : row + 1;
      std::fill_n(out + row * p.n, p.n, T(0));
      std::copy(a + row * p.n + first, a + row * p.n + last, out + row * p.n + first);
    }
    if (Potrf(p.upper ? 'L' : 'U', static_cast<int>(p.n), out) != 0) FillNan(out, size);
  });
}

void RunCholesky(const CholeskyParams& p) {
  WithType(p.compute, [&](auto zero) { Cholesky<decltype(zero)>(p); });
}
bool FitsCholesky(const CholeskyParams& p) { return HasType(p.compute) && p.n <= kLongest; }

// ---- QR -------------------------------------------------------------------------------------------------------------

template <class T>
struct QrRoom : Room {
  QrRoom(const QrParams& p, void* start)
      : Room(start), lwork(std::max<int64_t>(1, std::max(p.n, p.q_columns)) * kBlock), tau(Take<T>(std::min(p.m, p.n))), work(Take<T>(lwork)) {}
  int64_t lwork;
  T* tau;
  T* work;
};

template <class T>
int64_t QrTasks(const QrParams& p) {
  const int64_t k = std::min(p.m, p.n);
  const double steps = static_cast<double>(p.m) * static_cast<double>(k) * static_cast<double>(p.n + p.q_columns);
  return TasksFor(p.batch, steps, QrRoom<T>(p, nullptr).bytes());
}

// What Householder's reflectors leave above the diagonal, row by row.
template <class T>
void TakeR(const QrParams& p, const T* a, T* r) {
  for (int64_t row = 0; row < p.r_rows; ++row) {
    for (int64_t column = 0; column < p.n; ++column) r[row * p.n + column] = column < row ? T(0) : a[column * p.m + row];
  }
}

template <class T>
void Qr(const QrParams& p) {
  const int64_t k = std::min(p.m, p.n);
  ForEachMatrix(p.batch, QrTasks<T>(p), p.scratch, QrRoom<T>(p, nullptr).bytes(), [&](int64_t i, void* start) {
    const QrRoom<T> room(p, start);
    const int m = static_cast<int>(p.m), lwork = static_cast<int>(room.lwork);
    T* const a = At<T>(p.a, i * p.m * p.n);
    T* const q = At<T>(p.q, i * p.m * p.q_columns);
    if (k > 0) Geqrf(m, static_cast<int>(p.n), a, room.tau, room.work, lwork);
    if (p.r) TakeR<T>(p, a, At<T>(p.r, i * p.r_rows * p.n));
    if (!q) return;
    if (k > 0) std::copy_n(a, p.m * k, q);
    MakeQ(m, static_cast<int>(p.q_columns), static_cast<int>(k), q, room.tau, room.work, lwork);
  });
}

void RunQr(const QrParams& p) {
  WithType(p.compute, [&](auto zero) { Qr<decltype(zero)>(p); });
}
int64_t QrScratch(const QrParams& p) {
  return WithType(p.compute, [&](auto zero) {
    using T = decltype(zero);
    return QrTasks<T>(p) * QrRoom<T>(p, nullptr).bytes();
  });
}
bool FitsQr(const QrParams& p) { return HasType(p.compute) && p.m <= kLongest && p.n <= kLongest; }

// ---- Singular values ------------------------------------------------------------------------------------------------

// a is the transposed matrix to LAPACK: its left vectors are our right ones.
template <class T>
struct SvdTask {
  explicit SvdTask(const SvdParams& p)
      : m(static_cast<int>(p.n)), n(static_cast<int>(p.m)), k(std::min(m, n)), job(!p.vectors ? 'N' : p.full ? 'A' : 'S'), columns(p.full ? n : k) {
    T best = 0;
    Gesdd(job, m, n, nullptr, nullptr, nullptr, nullptr, columns, &best, -1, nullptr, nullptr);
    lwork = static_cast<int64_t>(std::nextafter(std::real(best), std::numeric_limits<Real<T>>::infinity())) + 1;
  }
  int64_t RealWork() const {
    if (!kIsComplex<T>) return 0;
    const int64_t few = k, many = std::max(m, n);
    return job == 'N' ? 7 * few : std::max(5 * few * few + 5 * few, 2 * many * few + 2 * few * few + few);
  }
  int m, n, k;
  char job;
  int columns;  // that our u has
  int64_t lwork;
};

template <class T>
struct SvdRoom : Room {
  SvdRoom(const SvdTask<T>& task, void* start)
      : Room(start),
        values(Take<Real<T>>(task.k)),
        work(Take<T>(task.lwork)),
        real_work(Take<Real<T>>(task.RealWork())),
        whole_work(Take<int>(8 * static_cast<int64_t>(task.k))) {}
  Real<T>* values;
  T* work;
  Real<T>* real_work;
  int* whole_work;
};

template <class T>
int64_t SvdTasks(const SvdParams& p, int64_t bytes) {
  return TasksFor(p.batch, 8 * static_cast<double>(p.m) * static_cast<double>(p.n) * static_cast<double>(std::min(p.m, p.n)), bytes);
}

template <class T>
bool AllFinite(const T* a, int64_t count) {
  return std::all_of(a, a + count, [](T x) { return std::isfinite(std::real(x)) && std::isfinite(std::imag(x)); });
}

template <class T>
void Svd(const SvdParams& p) {
  const SvdTask<T> task(p);
  const int64_t bytes = SvdRoom<T>(task, nullptr).bytes(), rows = p.full ? p.n : task.k;
  ForEachMatrix(p.batch, SvdTasks<T>(p, bytes), p.scratch, bytes, [&](int64_t i, void* start) {
    const SvdRoom<T> room(task, start);
    T* const a = At<T>(p.a, i * p.m * p.n);
    T* const u = At<T>(p.u, i * p.m * task.columns);
    T* const vt = At<T>(p.vt, i * rows * p.n);
    T* const sigma = At<T>(p.sigma, i * task.k);
    const bool found = AllFinite(a, p.m * p.n) &&  // its iterations may not end otherwise
                       Gesdd(task.job, task.m, task.n, a, room.values, vt, u, task.columns, room.work, static_cast<int>(task.lwork),
                             room.real_work, room.whole_work) == 0;
    if (found) {
      std::copy_n(room.values, task.k, sigma);
      return;
    }
    FillNan(sigma, task.k);
    FillNan(u, p.m * task.columns);
    FillNan(vt, rows * p.n);
  });
}

void RunSvd(const SvdParams& p) {
  WithType(p.compute, [&](auto zero) { Svd<decltype(zero)>(p); });
}
int64_t SvdScratch(const SvdParams& p) {
  return WithType(p.compute, [&](auto zero) {
    using T = decltype(zero);
    const int64_t bytes = SvdRoom<T>(SvdTask<T>(p), nullptr).bytes();
    return SvdTasks<T>(p, bytes) * bytes;
  });
}
bool FitsSvd(const SvdParams& p) {
  return HasType(p.compute) && std::max(p.m, p.n) <= kLongest && std::min(p.m, p.n) <= kMostValues && p.m * p.n <= int64_t{1} << 30;
}

}  // namespace
}  // namespace anyacl::linalg

namespace anyacl::cpu {

using namespace linalg;  // NOLINT: the kernels of one header

std::span<const Kernel> InverseKernels() {
  static constexpr Kernel kernels[] = {MakeKernel<InverseParams, FitsInverse, RunInverse, InverseScratch>("lapack")};
  return kernels;
}
std::span<const Kernel> DeterminantKernels() {
  static constexpr Kernel kernels[] = {MakeKernel<DeterminantParams, FitsDeterminant, RunDeterminant, DeterminantScratch>("lapack")};
  return kernels;
}
std::span<const Kernel> CholeskyKernels() {
  static constexpr Kernel kernels[] = {MakeKernel<CholeskyParams, FitsCholesky, RunCholesky>("lapack")};
  return kernels;
}
std::span<const Kernel> QrKernels() {
  static constexpr Kernel kernels[] = {MakeKernel<QrParams, FitsQr, RunQr, QrScratch>("lapack")};
  return kernels;
}
std::span<const Kernel> SvdKernels() {
  static constexpr Kernel kernels[] = {MakeKernel<SvdParams, FitsSvd, RunSvd, SvdScratch>("lapack")};
  return kernels;
}

}  // namespace anyacl::cpu
