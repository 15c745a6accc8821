// SPDX-License-Identifier: Apache-2.0
// The exchange APIs of other frameworks: tensors in and out without a capsule.
#ifndef TETHER_PYTHON_DATA_EXCHANGE_API_H_
#define TETHER_PYTHON_DATA_EXCHANGE_API_H_

#include "python/convert/convert.h"
#include "python/data/capsules.h"

namespace tether_py {

extern PyObject* exchange_api_name;  // "__dlpack_c_exchange_api__"

// From the attribute of that name: a capsule, or an address as older producers have it. NULL with
// an error set.
const DLPackExchangeAPI* ParseExchangeAPI(PyObject* attribute);
// The exchange API of a tensor class. NULL with an error set.
const DLPackExchangeAPI* ExchangeAPIOf(PyObject* cls);
// Remembers the API of a class. False with an error set.
bool LearnExchangeAPI(PyTypeObject* cls);
// Whether that is the API of our add-on for torch.
bool UsesAddon(PyTypeObject* cls);

// A new reference, or NULL with an error set.
TVMFFIObject* ImportByAPI(PyObject* obj, const DLPackExchangeAPI* api,
                          const ImportOptions& options);
// The setter of classes with an exchange API, and those of the ones among them with lazy signs
// (torch_signs.h): where our add-on refuses them, where the bits can be looked at, and where they
// are asked for.
bool SetByExchangeAPI(PyObject* obj, TVMFFIAny* out, Arguments* args);
bool SetByAddon(PyObject* obj, TVMFFIAny* out, Arguments* args);
bool SetWithSignBits(PyObject* obj, TVMFFIAny* out, Arguments* args);
bool SetWithLazySigns(PyObject* obj, TVMFFIAny* out, Arguments* args);
// A container that came with a tag: passes on its API and the stream of its tensors.
bool SetTaggedContainer(PyObject* obj, const DLPackExchangeAPI* tag, TVMFFIAny* out,
                        Arguments* args);

// A managed tensor for that framework. A tensor that came from there is exported by the framework
// itself, so that the result depends on neither h nor the Python object that h keeps. NULL with an
// error set.
DLManagedTensorVersioned* ExportTo(const DLPackExchangeAPI* api, TVMFFIObject* h);

int InitExchangeAPIs();

}  // namespace tether_py
#endif  // TETHER_PYTHON_DATA_EXCHANGE_API_H_
