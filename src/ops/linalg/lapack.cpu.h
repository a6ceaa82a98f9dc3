// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors
//
// The few functions of LAPACK that we call, overloaded over its four types. Matrices lie column by column. What they return is
// LAPACK's info: 0, or that there is no result.
#ifndef ANYACL_OPS_LINALG_LAPACK_CPU_H_
#define ANYACL_OPS_LINALG_LAPACK_CPU_H_

#include <complex>
#include <cstddef>

namespace anyacl::linalg {

using C64 = std::complex<float>;
using C128 = std::complex<double>;

extern "C" {  // as gfortran calls: everything by address, lengths of texts by value at the end
#define ANYACL_LAPACK(x, T)                                                                                    \
  void x##getrf_(const int* m, const int* n, T* a, const int* lda, int* pivots, int* info);                    \
  void x##getri_(const int* n, T* a, const int* lda, const int* pivots, T* work, const int* lwork, int* info); \
  void x##potrf_(const char* uplo, const int* n, T* a, const int* lda, int* info, size_t);                     \
  void x##geqrf_(const int* m, const int* n, T* a, const int* lda, T* tau, T* work, const int* lwork, int* info);
ANYACL_LAPACK(s, float)
ANYACL_LAPACK(d, double)
ANYACL_LAPACK(c, C64)
ANYACL_LAPACK(z, C128)
#undef ANYACL_LAPACK
#define ANYACL_LAPACK(name, T)                                                                                                \
  void name##_(const int* m, const int* n, const int* k, T* a, const int* lda, const T* tau, T* work, const int* lwork, int* info);
ANYACL_LAPACK(sorgqr, float)
ANYACL_LAPACK(dorgqr, double)
ANYACL_LAPACK(cungqr, C64)
ANYACL_LAPACK(zungqr, C128)
#undef ANYACL_LAPACK
#define ANYACL_LAPACK(x, T)                                                                                                   \
  void x##gesdd_(const char* jobz, const int* m, const int* n, T* a, const int* lda, T* s, T* u, const int* ldu, T* vt,       \
                 const int* ldvt, T* work, const int* lwork, int* iwork, int* info, size_t);
ANYACL_LAPACK(s, float)
ANYACL_LAPACK(d, double)
#undef ANYACL_LAPACK
#define ANYACL_LAPACK(x, T, R)                                                                                                \
  void x##gesdd_(const char* jobz, const int* m, const int* n, T* a, const int* lda, R* s, T* u, const int* ldu, T* vt,       \
                 const int* ldvt, T* work, const int* lwork, R* rwork, int* iwork, int* info, size_t);
ANYACL_LAPACK(c, C64, float)
ANYACL_LAPACK(z, C128, double)
#undef ANYACL_LAPACK
}

#define ANYACL_LAPACK(x, T, qr)                                                                               \
  inline int Getrf(int n, T* a, int* pivots) {                                                                \
    int info = 0;                                                                                             \
    x##getrf_(&n, &n, a, &n, pivots, &info);                                                                  \
    return info;                                                                                              \
  }                                                                                                           \
  inline int Getri(int n, T* a, const int* pivots, T* work, int lwork) {                                      \
    int info = 0;                                                                                             \
    x##getri_(&n, a, &n, pivots, work, &lwork, &info);                                                        \
    return info;                                                                                              \
  }                                                                                                           \
  inline int Potrf(char triangle, int n, T* a) {                                                              \
    int info = 0;                                                                                             \
    x##potrf_(&triangle, &n, a, &n, &info, 1);                                                                \
    return info;                                                                                              \
  }                                                                                                           \
  inline int Geqrf(int m, int n, T* a, T* tau, T* work, int lwork) {                                          \
    int info = 0;                                                                                             \
    x##geqrf_(&m, &n, a, &m, tau, work, &lwork, &info);                                                       \
    return info;                                                                                              \
  }                                                                                                           \
  inline int MakeQ(int m, int columns, int reflectors, T* q, const T* tau, T* work, int lwork) {              \
    int info = 0;                                                                                             \
    qr##_(&m, &columns, &reflectors, q, &m, tau, work, &lwork, &info);                                        \
    return info;                                                                                              \
  }
ANYACL_LAPACK(s, float, sorgqr)
ANYACL_LAPACK(d, double, dorgqr)
ANYACL_LAPACK(c, C64, cungqr)
ANYACL_LAPACK(z, C128, zungqr)
#undef ANYACL_LAPACK

// job: 'N' values only, 'S' the vectors that belong to them, 'A' whole bases. lwork -1 asks for its best value, in work[0].
#define ANYACL_LAPACK(x, T)                                                                                               \
  inline int Gesdd(char job, int m, int n, T* a, T* s, T* u, T* vt, int ldvt, T* work, int lwork, T*, int* iwork) {       \
    int info = 0;                                                                                                         \
    x##gesdd_(&job, &m, &n, a, &m, s, u, &m, vt, &ldvt, work, &lwork, iwork, &info, 1);                                   \
    return info;                                                                                                          \
  }
ANYACL_LAPACK(s, float)
ANYACL_LAPACK(d, double)
#undef ANYACL_LAPACK
#define ANYACL_LAPACK(x, T, R)                                                                                            \
  inline int Gesdd(char job, int m, int n, T* a, R* s, T* u, T* vt, int ldvt, T* work, int lwork, R* rwork, int* iwork) { \
    int info = 0;                                                                                                         \
    x##gesdd_(&job, &m, &n, a, &m, s, u, &m, vt, &ldvt, work, &lwork, rwork, iwork, &info, 1);                            \
    return info;                                                                                                          \
  }
ANYACL_LAPACK(c, C64, float)
ANYACL_LAPACK(z, C128, double)
#undef ANYACL_LAPACK

}  // namespace anyacl::linalg

#endif  // ANYACL_OPS_LINALG_LAPACK_CPU_H_
