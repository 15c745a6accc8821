#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Checks the model of the tie: configurations must verify exhaustively, mutations must not.
#
#   model/run.sh [--quick | --rest | --all] [NAME ...]   (default --quick; --rest is what that leaves out;
#                                                         NAME picks single rows)
#
# Needs spin and a C compiler. JOBS (default 2) checks run at a time. Exit status 0 when every row
# of the table came out as expected.
set -u
here=$(cd "$(dirname "$0")" && pwd)
CC=${CC:-cc}

# name, set (q: quick too, a: --all only), what must happen, definitions
rows() {
  cat <<'ROWS'
gil                     q  holds  -DWEAKPTR -DOPS=2
gil-long                a  holds  -DWEAKPTR
gil-trashcan            q  holds  -DTRASH
gil-del                 q  holds  -DHASDEL
gil-adopted             q  holds  -DADOPT -DOPS=2
gil-adopted-weak        a  holds  -DADOPT -DWEAKPTR -DOPS=2
gil-collector-a         q  holds  -DCYCLE=1
gil-collector-b         a  holds  -DCYCLE=2 -DWEAKPTR
gil-shutdown            q  holds  -DSHUTDOWN -DOPS=2
ft                      q  holds  -DFT -DOPS=2
ft-long                 a  holds  -DFT
ft-weak                 a  holds  -DFT -DWEAKPTR -DOPS=2
ft-trashcan             a  holds  -DFT -DTRASH
ft-del                  q  holds  -DFT -DHASDEL
ft-abandon              a  holds  -DFT -DABANDON
ft-adopted              a  holds  -DFT -DADOPT -DNPY=1
ft-adopted-two          a  holds  -DFT -DADOPT -DOPS=1
ft-collector-a          a  holds  -DFT -DCYCLE=1 -DOPS=2
ft-collector-b          a  holds  -DFT -DCYCLE=2 -DOPS=2
ft-shutdown             a  holds  -DFT -DSHUTDOWN -DOPS=2
let-go-first            q  fails  -DM_LET_GO_FIRST
no-word-reference       q  fails  -DM_NO_WORD_REF
shortcut-ignores-weak   q  fails  -DWEAKPTR -DM_SHORTCUT_NO_WEAK
no-handle-lock          q  fails  -DM_NO_HANDLE_LOCK
handle-not-emptied      q  fails  -DM_HANDLE_NOT_EMPTIED
promote-blindly         q  fails  -DM_PROMOTE_BLIND
finalized-not-cleared   q  fails  -DM_FINALIZED_NOT_CLEARED
blind-publish           q  fails  -DM_BLIND_PUBLISH
no-mine-check           q  fails  -DTRASH -DM_NO_MINE_CHECK
tryincref-outside       a  fails  -DFT -DM_TRYINC_OUTSIDE
resurrection-window     a  fails  -DFT -DM_RESURRECTION_WINDOW
use-outside             a  fails  -DFT -DM_USE_OUTSIDE
move-outside            a  fails  -DFT -DM_MOVE_OUTSIDE
slot-after-deleter      q  fails  -DADOPT -DOPS=2 -DM_SLOT_AFTER_DELETER
no-strong-hook          q  fails  -DADOPT -DWEAKPTR -DOPS=2 -DM_NO_STRONG_HOOK
no-strong-hook-prefix   q  fails  -DWEAKPTR -DOPS=2 -DM_NO_STRONG_HOOK
drain-midway            q  fails  -DADOPT -DM_DRAIN_MID
drain-in-drop           a  fails  -DADOPT -DLONGUSE -DM_DRAIN_IN_DROP
requested-after-pop     q  fails  -DADOPT -DM_REQUESTED_AFTER_POP
no-guard-list           a  fails  -DCYCLE=2 -DM_NO_GUARD
no-shutdown-gate        q  fails  -DSHUTDOWN -DM_NO_GATE
no-reader-gate          q  fails  -DFT -DSHUTDOWN -DOPS=2 -DM_NO_READER_GATE
one-gate                q  fails  -DFT -DSHUTDOWN -DOPS=2 -DM_ONE_GATE
ROWS
}

check_row() {  # name set expectation definitions...
  name=$1; set=$2; expect=$3; shift 3
  dir=$TIE_MODEL_TMP/$name
  mkdir -p "$dir" && cd "$dir" || exit 1
  if ! spin -a "$@" "$here/tie.pml" >spin.log 2>&1; then
    printf '%-23s BROKEN   spin: %s\n' "$name" "$(grep -m1 Error spin.log)"; return 1
  fi
  # An optimised checker takes 18 s to compile and is twice as fast: only long searches repay that.
  case $set:$expect in a:holds) opt=-O1 ;; *) opt=-O0 ;; esac
  if ! $CC $opt -w -DSAFETY -DCOLLAPSE -DMEMLIM=3000 -o pan pan.c 2>cc.log; then
    printf '%-23s BROKEN   compiler: %s\n' "$name" "$(head -1 cc.log)"; return 1
  fi
  ./pan -n -m1000000 >pan.log 2>&1
  errors=$(sed -n 's/.*errors: \([0-9]*\).*/\1/p' pan.log)
  states=$(sed -n 's/^ *\([0-9.e+]*\) states, stored.*/\1/p' pan.log)
  why=$(sed -n 's/^pan:1: \(.*\) (at depth.*/\1/p' pan.log)
  # A search that was cut short (depth, memory) proves nothing.
  if grep -q -e 'Search not completed' -e 'search depth too small' -e 'out of memory' pan.log &&
      [ "$errors" = 0 ]; then
    printf '%-23s BROKEN   search not completed\n' "$name"; return 1
  fi
  case $expect:${errors:-none} in
    holds:0) printf '%-23s holds    %10s states\n' "$name" "$states" ;;
    fails:[1-9]*) printf '%-23s fails    %10s states  %s\n' "$name" "$states" "$why" ;;
    holds:[1-9]*) printf '%-23s WRONG    must hold: %s\n' "$name" "$why"; return 1 ;;
    fails:0) printf '%-23s WRONG    must fail, but holds\n' "$name"; return 1 ;;
    *) printf '%-23s BROKEN   %s\n' "$name" "$(tail -1 pan.log)"; return 1 ;;
  esac
}

if [ "${1:-}" = --row ]; then
  shift
  check_row "$@"
  exit
fi

sets=q
case ${1:-} in
  --quick) shift ;;
  --all) sets='[qa]'; shift ;;
  --rest) sets=a; shift ;;
  -*) sed -n '3,8s/^# \{0,1\}//p' "$0"; exit 2 ;;
esac
command -v spin >/dev/null || { echo "model/run.sh: spin is not installed" >&2; exit 2; }

TIE_MODEL_TMP=$(mktemp -d)
export TIE_MODEL_TMP
trap 'rm -rf "$TIE_MODEL_TMP"' EXIT
if [ $# -gt 0 ]; then
  for name in "$@"; do
    rows | grep "^$name " || { echo "model/run.sh: no row named $name" >&2; exit 2; }
  done >"$TIE_MODEL_TMP/rows" || exit 2
else
  rows | grep "^[^ ]* *$sets " >"$TIE_MODEL_TMP/rows"
fi
xargs -P "${JOBS:-2}" -L 1 sh "$here/run.sh" --row <"$TIE_MODEL_TMP/rows"
status=$?
[ $status -eq 0 ] && echo "model: all $(wc -l <"$TIE_MODEL_TMP/rows") rows as expected" ||
  echo "model: FAILED"
exit $((status != 0))
