// SPDX-License-Identifier: Apache-2.0
// Copyright The AnyACL Authors

// Status codes of the operator interface. Bare numbers, so that a program which repeats a
// definition gets an identical one.

#ifndef ANYACL_ACLNN_OPDEV_OP_ERRNO_H_
#define ANYACL_ACLNN_OPDEV_OP_ERRNO_H_

// Success.
#define ACLNN_SUCCESS 0

// Fault of the caller.
#define ACLNN_ERR_PARAM_NULLPTR 161001  // a required pointer argument is null
#define ACLNN_ERR_PARAM_INVALID 161002  // a parameter fails validation

// A call into the runtime failed.
#define ACLNN_ERR_RUNTIME_ERROR 361001

// Internal.
#define ACLNN_ERR_INNER 561000  // not further specified
#define ACLNN_ERR_INNER_INFERSHAPE_ERROR 561001  // output-shape inference failed
#define ACLNN_ERR_INNER_TILING_ERROR 561002  // kernel tiling failed
#define ACLNN_ERR_INNER_FIND_KERNEL_ERROR 561003  // no kernel, or product not supported
#define ACLNN_ERR_INNER_CREATE_EXECUTOR 561101  // executor could not be created
#define ACLNN_ERR_INNER_NOT_TRANS_EXECUTOR 561102  // executor ownership not handed over
#define ACLNN_ERR_INNER_NULLPTR 561103  // null pointer, or a sub-operator could not be planned
#define ACLNN_ERR_INNER_WRONG_ATTR_INFO_SIZE 561104  // attribute count wrong
#define ACLNN_ERR_INNER_KEY_CONFILICT 561105  // older spelling of the next
#define ACLNN_ERR_INNER_KEY_CONFLICT 561105  // kernel key conflict
#define ACLNN_ERR_INNER_INVALID_IMPL_MODE 561106  // implementation mode wrong
#define ACLNN_ERR_INNER_OPP_PATH_NOT_FOUND 561107  // ASCEND_OPP_PATH not set
#define ACLNN_ERR_INNER_LOAD_JSON_FAILED 561108  // kernel description json not loadable
#define ACLNN_ERR_INNER_JSON_VALUE_NOT_FOUND 561109  // json field missing
#define ACLNN_ERR_INNER_JSON_FORMAT_INVALID 561110  // json format field invalid
#define ACLNN_ERR_INNER_JSON_DTYPE_INVALID 561111  // json dtype field invalid
#define ACLNN_ERR_INNER_OPP_KERNEL_PKG_NOT_FOUND 561112  // binary kernel package not loaded
#define ACLNN_ERR_INNER_OP_FILE_INVALID 561113  // operator json file invalid
#define ACLNN_ERR_INNER_ATTR_NUM_OUT_OF_BOUND 561114  // more attributes than the json describes
#define ACLNN_ERR_INNER_ATTR_LEN_NOT_ENOUGH 561115  // fewer attributes than the json describes
#define ACLNN_ERR_INNER_INPUT_NUM_IN_JSON_TOO_LARGE 561116  // more than 32 inputs
#define ACLNN_ERR_INNER_INPUT_JSON_IS_NULL 561117  // json input description missing
#define ACLNN_ERR_INNER_STATIC_WORKSPACE_INVALID 561118  // static workspace description invalid
#define ACLNN_ERR_INNER_STATIC_BLOCK_DIM_INVALID 561119  // static core-count description invalid

#endif  // ANYACL_ACLNN_OPDEV_OP_ERRNO_H_
