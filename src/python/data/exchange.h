// SPDX-License-Identifier: Apache-2.0
// Tensors of other libraries, by DLPack.
#ifndef TETHER_PYTHON_DATA_EXCHANGE_H_
#define TETHER_PYTHON_DATA_EXCHANGE_H_

#include "python/convert/convert.h"

namespace tether_py {

int InitDLPack(PyObject* module);
void ForgetExchangeAPI(PyTypeObject* cls);  // which is dead or dying
// Types that speak DLPack, in three places of the order.
int ResolveExchangeAPI(PyObject* obj, Setter* out);
int ResolveTorchTensor(PyObject* obj, Setter* out);
int ResolveDLPack(PyObject* obj, Setter* out);
// The exchange API of a tensor class. NULL with an error set.
const DLPackExchangeAPI* ExchangeAPIOf(PyObject* cls);
// The Python object whose memory a tensor shows and keeps, borrowed, or NULL.
PyObject* MemoryOwnerOf(TVMFFIObject* tensor);
// A managed tensor for that framework. One that came from there is exported by the framework
// itself, so that the result depends on neither h nor the Python object that h keeps. NULL with an
// error set.
DLManagedTensorVersioned* ExportTo(const DLPackExchangeAPI* api, TVMFFIObject* h);
// Whether `api` is the one of Tensor itself, so that there is nothing to translate.
bool IsOwnExchangeAPI(const DLPackExchangeAPI* api);
// A container that came with a tag: passes on its API and the stream of its tensors.
bool SetTaggedContainer(PyObject* obj, const DLPackExchangeAPI* tag, TVMFFIAny* out,
                        Arguments* args);

// Frees what nobody consumed of a capsule: consumers rename it.
void DropCapsule(PyObject* capsule);
void DropVersionedCapsule(PyObject* capsule);
inline constexpr const char* kCapsule = "dltensor";
inline constexpr const char* kVersionedCapsule = "dltensor_versioned";
inline constexpr const char* kUsedCapsule = "used_dltensor";
inline constexpr const char* kUsedVersionedCapsule = "used_dltensor_versioned";

}  // namespace tether_py
#endif  // TETHER_PYTHON_DATA_EXCHANGE_H_
