#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The documentation site, in build/site: open build/site/index.html, no server is needed. The reference
# is made from the package in TETHER_PACKAGE, or from the one that this builds.
source "$(dirname "$0")/common.sh"

package=${TETHER_PACKAGE:-}
pages=build/site-pages

# The crates have a reference of their own, made by cargo; the page of the site leads to it.
rust_page() {
  mkdir -p $pages/reference
  if command -v cargo >/dev/null && (cd rust && TVM_FFI_LIBDIR=$ROOT/$package/tvm_ffi/lib \
    cargo doc --no-deps --quiet) >build/cargo-doc.log 2>&1; then
    rust_made=yes
  else
    rust_made=no
    echo "no reference of the Rust crates: cargo is missing, or see build/cargo-doc.log"
  fi
  "$PYTHON" scripts/site/rust_page.py $rust_made >$pages/reference/rust.md
}

reference() {
  rm -rf $pages && mkdir -p $pages
  "$PYTHON" scripts/site/cpp_reference.py $pages/reference
  PYTHONPATH=$package "$PYTHON" scripts/site/python_reference.py $pages/reference
  rust_page
}

site() {
  "$PYTHON" scripts/site/stage.py $pages
  .cache/site/bin/python -m sphinx -q -W --keep-going -j "$JOBS" -c scripts/site -d build/site-doctrees \
    $pages build/site
  if [ $rust_made = yes ]; then
    rm -rf build/site/rustdoc && cp -r "${CARGO_TARGET_DIR:-rust/target}/doc" build/site/rustdoc
  fi
  echo "build/site/index.html: $(find build/site -name '*.html' -not -path '*/rustdoc/*' | wc -l) pages"
}

scripts/setup.sh docs
if [ -z "$package" ]; then
  step "build: library and package" scripts/build.sh demo
  package=build/demo/package
fi
step "reference" reference
step "site" site
