// SPDX-License-Identifier: Apache-2.0
// The stream that is current on a device.
#ifndef TETHER_PYTHON_DATA_STREAM_H_
#define TETHER_PYTHON_DATA_STREAM_H_

#include "python/base/compat.h"

namespace tether_py {

int InitStreams(PyObject* module);

}  // namespace tether_py
#endif  // TETHER_PYTHON_DATA_STREAM_H_
