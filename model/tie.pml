// SPDX-License-Identifier: Apache-2.0
//
// The tying protocol between one C++ object H and its Python wrappers, for exhaustive checking with
// spin. Every inline below has the order of steps of the function of the same name in
// src/tie/tie.h (fetch = Fetch, drop = Drop, ...); change both or neither.
//
// Configuration (-D):
//   FT        free-threaded build         ADOPT     H is adopted, and its address is used twice
//   WEAKPTR   a C++ weak reference        TRASH     wrappers can be parked at count 0
//   HASDEL    a type with __del__         ABANDON   (FT) fetch gives up on a stuck resurrection
//   CYCLE     a collector, and a wrapper in a cycle: 1 rule A, 2 rule B
//   LONGUSE   calls that let go of the GIL while they use H (and no moves)
//   SHUTDOWN  the interpreter ends under the C++ threads
//   NPY, OPS  number of Python threads, and of the steps each takes
// Mutations: M_*, see README.md.

#ifndef NPY
#define NPY 2
#endif
#ifndef OPS
#define OPS 3
#endif
#ifdef CYCLE
#define LONGUSE
#endif
#define NW 5            // wrapper 0 is "none"
#define LAST (NW - 1)

// The tie word: a wrapper, and tags.
#define INACT 8
#define LOCK 16
#define W_OF(v) ((v) & 7)

// The handle field of a wrapper.
#define EMPTY 0         // never bound, or moved away
#define LIVE 1          // owns one strong reference to H
#define DORM 2          // H|dormant
#define DORMLOCK 3      // H|dormant|lock
#define GONE 4          // H died, or the wrapper waits on the reclaim list

// Storage of H.
#define FREED 0
#define OK 1            // constructed, not destroyed
#define HUSK 2          // destroyed, storage still there (a C++ weak reference exists)

#define STRONG 1
#define WEAK 2
#define BOTH 3

// Steps of a Python thread.
#define FETCH 1
#define DROP 2
#define USE 3
#define MOVE 4

byte strong = 1, weak = 1;   // combined_ref_count of H
byte hmem = OK;
bit held = 1;                // a C++ container owns one strong reference and hands out copies
byte hgen = 1;               // which object sits at the address of H

byte word[3];                // the tie word: [0] the prefix, [1] [2] adopted slots
byte pad;                    // padding word of H: 0 or the number of an adopted slot
bit slot_h[3];               // slot[n].H == H
bit slab;                    // lock of the slab
bit ours;                    // H->deleter is the replaced one

bit mem[NW];                 // the wrapper's memory is allocated
byte rc[NW], hnd[NW], wgen[NW];
bit fin[NW];                 // CPython's FINALIZED mark
bit merged[NW];              // FT: no resurrection in progress
bit tinc[NW];                // FT: TryIncRef enabled
bit cs[NW];                  // FT: critical section of the wrapper
byte wr;                     // a Python weak reference to this wrapper (0: none or cleared)

byte gil;                    // GIL build: held
byte head, nxt[NW];          // reclaim list; the link lives in the handle field (GONE)
bit requested, pend, closing, closed, over;
byte inflight, readers;
byte running, pyrun;

byte tied;                   // ghost: the wrapper that identity promises to hand out (0: none)
bit doomed;                  // ghost: the shortcut promised that H dies now
byte cyc;                    // the wrapper in a garbage cycle; one reference to it is the cycle's
bit collecting;              // rule B: between "start" and "stop"
byte guard;                  // rule B: extra references on the guard list

#ifdef FT
#define GIL_ACQ skip
#define GIL_REL skip
#else
#define GIL_ACQ atomic { gil == 0 -> gil = 1 }
#define GIL_REL gil = 0
#endif
// User code runs here: with the GIL another Python thread may get its turn.
inline may_switch() { GIL_REL; GIL_ACQ }

#define H_VALID assert(hmem != FREED)
#define W_VALID(w) assert(mem[w] && !over)

// ---- words ----------------------------------------------------------------------------------

inline lock_word(s, v) {
#ifdef FT
  atomic { H_VALID; !(word[s] & LOCK) -> v = word[s]; word[s] = v | LOCK }
#else
  atomic { H_VALID; v = word[s] }
#endif
}
inline set_word(s, v) {  // publish and unlock in one store
  atomic { H_VALID; word[s] = v }
}
#ifdef FT
#define unlock_word(s, v) set_word(s, v)
#else
#define unlock_word(s, v) skip
#endif

#ifdef ADOPT
inline find_or_adopt(s) {
  atomic { H_VALID; s = pad }
  if
  :: s != 0 && slot_h[s]
  :: else ->
     atomic { !slab -> slab = 1 }
     s = pad;                                  // the lock may have been another adopter's
     if
     :: s != 0 && slot_h[s]
     :: else ->
        s = (slot_h[1] -> 2 : 1);
        assert(!slot_h[s]);
        word[s] = 0;
        slot_h[s] = 1;
        ours = 1;
        pad = s
     fi;
     slab = 0
  fi
}
inline find_slot(s) {
  atomic { H_VALID; s = pad; assert(s != 0 && slot_h[s]) }
}
#else
#define find_or_adopt(s) s = 0
#define find_slot(s) s = 0
#endif

// ---- storage release ------------------------------------------------------------------------

// Whoever runs this is alone with the word; only the handle can be contended.
inline settle(n, att) {
  rw = word[n];
  assert(!(rw & LOCK));
  assert(rw == 0 || (rw & INACT));            // I2
  if
  :: rw != 0 ->
     rw = W_OF(rw);
     if
#ifdef SHUTDOWN
     :: !att ->
#ifndef M_NO_GATE
        inflight++;
#endif
        if
        :: closed -> rw = 0; tied = 0
        :: else -> settle_handle()
        fi;
#ifndef M_NO_GATE
        inflight--
#endif
#endif
     :: else -> settle_handle()
     fi;
     word[n] = 0
  :: else
  fi
}
inline settle_handle() {
  // One compare-and-swap does "lock, empty, unlock".
  atomic {
#ifndef M_NO_HANDLE_LOCK
    hnd[rw] != DORMLOCK ->
#endif
    W_VALID(rw);
    assert(hnd[rw] == DORM || hnd[rw] == DORMLOCK);
#ifndef M_HANDLE_NOT_EMPTIED
    hnd[rw] = GONE;
#endif
    tied = 0
  }
}

inline push() {
#ifdef SHUTDOWN
  inflight++;
  if
  :: closed -> inflight--; rw = 0
  :: else ->
#endif
  W_VALID(rw);
  atomic { hnd[rw] = GONE; nxt[rw] = head; head = rw; rw = 0 }
  atomic { ph = requested; requested = 1 }
  if
  :: !ph -> pend = 1
  :: else
  fi;
  ph = 0;
#ifdef SHUTDOWN
  inflight--
  fi
#endif
}

inline release(att) {
  if
  :: rw == 0
  :: else ->
     if
     :: att -> w_decref_dead(rw)
     :: else -> push()
     fi
  fi
}

// A reference to a wrapper whose handle is dead already: its death cannot touch H.
inline w_decref_dead(w) {
  atomic { W_VALID(w); assert(rc[w] > 0); rc[w]--; ph = (rc[w] == 0) }
  if
  :: ph ->
     ph = 0;
     may_switch();                             // weak reference callbacks
     atomic {
       if
       :: wr == w -> assert(tied != w); wr = 0
       :: else
       fi
     }
     atomic { assert(rc[w] == 0); mem[w] = 0; w = 0 }
  :: else -> w = 0
  fi
}

inline destroy(att) {
  atomic { assert(hmem == OK); hmem = HUSK }
  if
  :: att -> may_switch()                       // destructors run user code
  :: else
  fi
}
inline free_h() { atomic { assert(hmem == HUSK); hmem = FREED } }

inline deleter(flags, att) {
#ifdef ADOPT
  dn = pad;
  if
  :: ours ->
     if
#ifdef M_NO_STRONG_HOOK
     :: (flags & WEAK) -> settle(dn, att)
#else
     :: (flags & STRONG) -> settle(dn, att)
#endif
     :: else
     fi;
#ifndef M_SLOT_AFTER_DELETER
     if
     :: (flags & WEAK) -> atomic { slot_h[dn] = 0; pad = 0; ours = 0 }
     :: else
     fi;
#endif
     skip
  :: else
  fi;
  if
  :: (flags & STRONG) -> destroy(att)
  :: else
  fi;
  if
  :: (flags & WEAK) -> free_h()
  :: (flags == STRONG) -> strong = 1           // some old binaries scribble on the count now
  :: else
  fi;
#ifdef M_SLOT_AFTER_DELETER
  if
  :: (flags & WEAK) -> slot_h[dn] = 0
  :: else
  fi;
#endif
  dn = 0;
  release(att)
#else
  if
  :: (flags & STRONG) -> destroy(att)
  :: else
  fi;
  if
  :: (flags & WEAK) -> settle(0, att); free_h(); release(att)
#ifndef M_NO_STRONG_HOOK
  :: flags == STRONG -> settle(0, att); release(att)     // only the storage is left
#endif
  :: else
  fi
#endif
}

// Deleters run on whichever thread brings a count to zero; `fl` says which phases are due.
inline h_decref(att) {
  atomic {
    assert(hmem == OK && strong > 0);
    strong--;
    if
    :: strong == 0 && weak == 1 -> weak = 0; fl = BOTH
    :: strong == 0 && weak > 1 -> fl = STRONG
    :: else
    fi
  }
  run_deleters(att)
}
inline h_decweak(att) {
  atomic { H_VALID; assert(weak > 0); weak--; fl = (weak == 0 -> WEAK : 0) }
  run_deleters(att)
}
inline run_deleters(att) {
  do
  :: fl == 0 -> break
  :: else ->
     deleter(fl, att);
     if
     :: fl == STRONG ->
        // P4: what a weak reference keeps is not tied.
        assert(word[0] == 0 && word[1] == 0 && word[2] == 0);
        atomic { H_VALID; weak--; fl = (weak == 0 -> WEAK : 0) }
     :: else -> fl = 0
     fi
  od
}

// ---- the reclaim list -----------------------------------------------------------------------

inline drain() {
  if
  :: head == 0
  :: else ->
     atomic { dw = head; head = 0 }
     do
     :: dw != 0 -> dl = nxt[dw]; nxt[dw] = 0; w_decref_dead(dw); dw = dl; dl = 0
     :: else -> break
     od
  fi
}

// ---- Python side ----------------------------------------------------------------------------

inline guard_ref(w) {
  // Rule B: whoever gets a wrapper during a collection pins it until "stop". Under the word's lock,
  // because the collector's finaliser looks at the guard list under it.
#if defined(CYCLE) && CYCLE == 2 && !defined(M_NO_GUARD)
  atomic {
    if
    :: collecting && w != 0 && w == cyc -> rc[w]++; guard++
    :: else
    fi
  }
#else
  skip
#endif
}

inline activate(w) {  // word locked and Inactive(w): everything but the publication
#ifdef FT
  atomic { hnd[w] != DORMLOCK -> assert(hnd[w] == DORM); hnd[w] = LIVE; wgen[w] = hgen }
#else  // nobody settles (H lives) or promotes (the GIL): no need to look at the lock
  atomic { assert(hnd[w] == DORM); hnd[w] = LIVE; wgen[w] = hgen }
#endif
#ifndef M_FINALIZED_NOT_CLEARED
  fin[w] = 0;
#endif
  tinc[w] = 1;
  guard_ref(w)
}

// The caller owns one strong reference, which the result takes over.
inline fetch(res) {                           // I4 and P1: what is handed out is `tied`
  find_or_adopt(s);
  do
  :: lock_word(s, v);
#ifdef M_DRAIN_MID
     drain();
#endif
     if
     :: v == 0 ->
        unlock_word(s, 0);
        atomic {  // a complete wrapper
          nw = 1;
          do
          :: mem[nw] -> nw++; assert(nw <= LAST)
          :: else -> break
          od;
          mem[nw] = 1; rc[nw] = 1; hnd[nw] = LIVE; wgen[nw] = hgen;
          fin[nw] = 0; merged[nw] = 1; tinc[nw] = 1
        }
        may_switch();
        lock_word(s, v);
        if
#ifdef M_BLIND_PUBLISH
        :: true ->
#else
        :: v == 0 ->
#endif
           atomic { assert(tied == 0 && !doomed); tied = nw; H_VALID; word[s] = nw }
           res = nw; nw = 0; break
#ifndef M_BLIND_PUBLISH
        :: else ->
           unlock_word(s, v);
           atomic { hnd[nw] = EMPTY; rc[nw] = 0; mem[nw] = 0; nw = 0 }
#endif
        fi
     :: v != 0 && !(v & INACT) ->
#ifdef M_TRYINC_OUTSIDE
        set_word(s, v);
        try_incref(v, ok);
        if
        :: ok -> res = v; give = 1; ok = 0; break
        :: else
        fi
#else
        try_incref(v, ok);
        if
        :: ok ->
           assert(v == tied && !doomed);
           guard_ref(v); unlock_word(s, v); res = v; give = 1; ok = 0; break
        :: else ->
#ifdef FT
           if
           :: set_word(s, v); rc[v] != 0 || word[s] != v  // retry once it moved
           :: atomic { tied = 0; set_word(s, 0) }                               // out of retries
           fi
#else
           atomic { tied = 0; set_word(s, 0) }
#endif
        fi
#endif
     :: else ->
        v = W_OF(v);
#if defined(FT) && !defined(M_RESURRECTION_WINDOW)
        if
        :: !merged[v] -> set_word(s, v | INACT); merged[v] || word[s] != (v | INACT)
#ifdef ABANDON
        :: !merged[v] ->                      // out of retries
           atomic { hnd[v] != DORMLOCK -> hnd[v] = EMPTY; tied = 0 }
           set_word(s, 0);
           w_decref_dead(v)
#endif
        :: else ->
#endif
        W_VALID(v);
        activate(v); assert(v == tied && !doomed); set_word(s, v); res = v; break
#if defined(FT) && !defined(M_RESURRECTION_WINDOW)
        fi
#endif
     fi
  od;
  v = 0; s = 0
}

inline try_incref(w, good) {
  atomic {
    W_VALID(w);
    if
#ifdef FT
    :: rc[w] > 0 && tinc[w] -> rc[w]++; good = 1
#else
    :: rc[w] > 0 -> rc[w]++; good = 1
#endif
    :: else -> good = 0
    fi
  }
}

// tp_finalize from dealloc. No drain here: it would let another thread take w (its temporary
// reference shows) before CPython sets the FINALIZED mark.
inline drop(w) {
#ifdef M_DRAIN_IN_DROP
  drain();
#endif
  if
  :: hnd[w] != LIVE
  :: else ->
     give = 1;
     find_slot(s);
     lock_word(s, v);
     if
#ifndef M_NO_MINE_CHECK
     :: v != w -> unlock_word(s, v); hnd[w] = EMPTY
#endif
#ifdef M_SHORTCUT_NO_WEAK
     :: v == w && strong == 1 ->
#else
     :: v == w && strong == 1 && weak == 1 ->
#endif
        hnd[w] = EMPTY;
        atomic { tied = 0; doomed = 1; set_word(s, 0) }
     :: else ->
#ifndef M_NO_WORD_REF
        rc[w]++;                              // 1
#endif
#ifdef M_LET_GO_FIRST
        give = 0; h_decref(1);
#endif
        hnd[w] = DORM;                        // 2
        set_word(s, w | INACT)                // 3
     fi;
     v = 0; s = 0;
     if
     :: give -> give = 0; h_decref(1)         // 4
     :: else
     fi
  fi
}

// Forget the tie and the handle: base tp_dealloc, tp_clear.
inline detach(w) {
  if
  :: hnd[w] != LIVE
  :: else ->
     find_slot(s);
     lock_word(s, v);
     hnd[w] = EMPTY;
     if
     :: v == w -> atomic { tied = 0; set_word(s, 0) }
     :: else -> unlock_word(s, v)
     fi;
     v = 0; s = 0;
     h_decref(1)
  fi
}

inline py_decref(w) {
  atomic { W_VALID(w); assert(rc[w] > 0); rc[w]--; z = (rc[w] == 0) }
  if
  :: z ->
#ifdef TRASH
     if
     :: true -> may_switch()                   // parked at count 0
     :: true
     fi;
#endif
#ifndef HASDEL
     if
     :: !fin[w] ->
        atomic { assert(rc[w] == 0); rc[w] = 1; tinc[w] = 0; merged[w] = 0 }
        drop(w);
        fin[w] = 1;
        atomic {  // the resurrection, if it is one, ends in the merged state
          W_VALID(w); assert(rc[w] > 0); rc[w]--; z = (rc[w] == 0); merged[w] = 1; tinc[w] = 1
        }
     :: else
     fi;
#endif
     if
     :: z ->
        z = 0;
        atomic {
          if
          :: wr == w ->
#ifndef HASDEL
             assert(tied != w);               // P4
#endif
             wr = 0
          :: else
          fi
        }
#ifndef HASDEL
        assert(tied != w);                    // P2: only __del__ types die while tied
#endif
        detach(w);
        atomic { assert(rc[w] == 0); mem[w] = 0 }
     :: else
     fi
  :: else
  fi;
  w = 0
}

#ifdef FT
#define CS_ACQ(w) atomic { !cs[w] -> cs[w] = 1 }
#define CS_REL(w) cs[w] = 0
#else
#define CS_ACQ(w) skip
#define CS_REL(w) skip
#endif

// The gate of those who follow a dormant handle; with the GIL a look at `closing` is enough.
#ifdef SHUTDOWN
inline enter_reader() {
#if defined(FT) && !defined(M_NO_READER_GATE)
  readers++;
  if
  :: closing -> readers--; ok = 0
  :: else -> ok = 1
  fi
#else
  ok = !closing
#endif
}
#if defined(FT) && !defined(M_NO_READER_GATE)
#define leave_reader() readers--
#else
#define leave_reader() skip
#endif
#else
#define enter_reader() ok = 1
#define leave_reader() skip
#endif

// Weak use: make the handle usable if H is still alive. The caller holds a reference to w.
inline promote(w) {
  do
  :: enter_reader();
     if
     :: !ok -> break
     :: else
     fi;
     atomic {
       W_VALID(w);
#ifndef M_NO_HANDLE_LOCK
       hnd[w] != DORMLOCK ->
#endif
       if
       :: hnd[w] == DORM -> hnd[w] = DORMLOCK; ok = 1
       :: else -> ok = 0
       fi
     }
     if
     :: !ok -> leave_reader(); break
     :: else
     fi;
     atomic {
       H_VALID;
#ifdef M_PROMOTE_BLIND
       strong++;
#else
       if
       :: strong > 0 -> strong++
       :: else -> ok = 0
       fi
#endif
     }
#ifdef M_NO_HANDLE_LOCK
     atomic { if :: hnd[w] == DORMLOCK -> hnd[w] = DORM :: else fi }
#else
     hnd[w] = DORM;
#endif
     leave_reader();
     if
     :: !ok -> break
     :: else
     fi;
     ok = 0;
     find_slot(s);
     lock_word(s, v);
     if
#ifdef FT
     :: v == (w | INACT) && !merged[w] -> set_word(s, v); give = 1
     :: v == (w | INACT) && merged[w] ->
#else
     :: v == (w | INACT) ->
#endif
        activate(w); set_word(s, w);
        atomic { rc[w]--; assert(rc[w] > 0) }
     :: else -> unlock_word(s, v); give = 1
     fi;
     v = 0; s = 0;
     if
     :: give -> give = 0; h_decref(1)
     :: else -> break
     fi
  od;
  ok = 0
}

// The critical section of the wrapper spans the check of its handle and the use (or move) of it.
inline use_or_move(w) {
#ifdef M_USE_OUTSIDE
  if :: op == MOVE -> CS_ACQ(w) :: else fi;
#elif defined(M_MOVE_OUTSIDE)
  if :: op == USE -> CS_ACQ(w) :: else fi;
#else
  CS_ACQ(w);
#endif
  promote(w);
  if
  :: hnd[w] == LIVE && op == USE ->
#ifdef LONGUSE
     may_switch();                             // a call that lets go of the GIL
#endif
     assert(hmem == OK && wgen[w] == hgen && strong > 0)                       // I3
  :: hnd[w] == LIVE && op == MOVE ->
     find_slot(s);
     lock_word(s, v);
     hnd[w] = EMPTY;
     if
     :: v == w -> atomic { tied = 0; set_word(s, 0) }
     :: else -> unlock_word(s, v)
     fi;
     v = 0; s = 0;
     give = 1
  :: else -> assert(tied != w || strong == 0 || closing)
  fi;
#ifdef M_USE_OUTSIDE
  if :: op == MOVE -> CS_REL(w) :: else fi
#elif defined(M_MOVE_OUTSIDE)
  if :: op == USE -> CS_REL(w) :: else fi
#else
  CS_REL(w)
#endif
}

#define LOCALS byte v, s, ph, fl, rw, dw, dl, nw, dn; bit ok, z, give

proctype python(byte mine) {
  LOCALS;
  byte n = OPS, op;
  do
  :: n > 0 || mine != 0 ->
     GIL_ACQ;
     drain();                                  // every entry, before any word is read
     if
     :: n > 0 && mine == 0 ->
        atomic {                               // the container hands out a copy
          if
          :: held -> assert(hmem == OK); strong++; op = FETCH
          :: else
          fi
        }
     :: n > 0 && mine == 0 ->
        atomic {                               // wr()
          if
          :: wr != 0 ->
             try_incref(wr, ok);
             if
             :: ok -> ok = 0; mine = wr; op = USE
             :: else
             fi
          :: else
          fi
        }
     :: mine != 0 -> op = DROP
     :: n > 0 && mine != 0 -> op = USE
#ifndef LONGUSE
     :: n > 0 && mine != 0 -> op = MOVE
#endif
     fi;
     n = (n > 0 -> n - 1 : 0);
     if
     :: op == FETCH -> fetch(mine)
     :: op == DROP -> py_decref(mine)
     :: op == USE || op == MOVE -> use_or_move(mine)
     :: else
     fi;
     op = 0;
     if
     :: give -> give = 0; h_decref(1)          // what fetch and move have left over
     :: else
     fi;
     GIL_REL
  :: else -> break
  od;
  atomic { pyrun--; running-- }
}

// The pending call: runs a drain when one was asked for.
active proctype pending() {
  LOCALS;
end:
  do
  :: atomic { pend && !over -> pend = 0; running++; pyrun++ }
     GIL_ACQ;
#ifndef M_REQUESTED_AFTER_POP
     requested = 0;
#endif
     drain();
#ifdef M_REQUESTED_AFTER_POP
     requested = 0;
#endif
     GIL_REL;
     atomic { running--; pyrun-- }
  od
}

proctype cpp_drop() {
  LOCALS;
  atomic { held = 0 }
  h_decref(0);
  running--
}

#ifdef ADOPT
// Another object of an old binary at the same address, whose maker leaves the padding word alone.
proctype cpp_reuse() {
  LOCALS;
  atomic {
    hmem == FREED || running == 1;
    if
    :: hmem == FREED ->
       hmem = OK; hgen++; strong = 1; weak = 1; ours = 0; doomed = 0; held = 1; ok = 1;
       if
       :: pad = 0
       :: pad = 1
       fi
    :: else
    fi
  }
  if
  :: ok -> ok = 0; atomic { held = 0 } h_decref(0)
  :: else
  fi;
  running--
}
#endif

#ifdef WEAKPTR
proctype cpp_weak() {
  LOCALS;
  atomic {
    H_VALID;
    if
#ifdef ADOPT
    :: hmem == OK && strong > 0 -> strong++; ok = 1      // (a scribbled count is not ours to read)
#else
    :: strong > 0 -> strong++; ok = 1
#endif
    :: else
    fi
  }
  if
  :: ok -> ok = 0; assert(hmem == OK && !doomed); h_decref(0)
  :: else
  fi;
  h_decweak(0);
  running--
}
#endif

#ifdef CYCLE
// The collector: rule A sees wrapper and object as one node, rule B does not.
proctype collector() {
  LOCALS;
  byte g;
  GIL_ACQ;
  atomic {  // one thread, or the world stopped
    g = cyc; collecting = 1;
    if
#if CYCLE == 1
    :: g != 0 && rc[g] == 1 && (hnd[g] != LIVE || strong == 1) ->
#else
    :: g != 0 && rc[g] == 1 ->
#endif
       if
       :: wr == g -> wr = 0
       :: else
       fi
    :: else -> g = 0
    fi
  }
  if
  :: g != 0 ->
     may_switch();                             // finalisers of the rest of the cycle
     // tp_finalize from the collector; the mark is set before.
     if
     :: hnd[g] == LIVE ->
        find_slot(s);
        lock_word(s, v);
        if
        :: v == g && !(strong == 1 && weak == 1) && guard == 0 ->
           rc[g]++; hnd[g] = DORM; set_word(s, g | INACT); v = 0; s = 0; h_decref(1)
        :: else -> set_word(s, v); v = 0; s = 0; fin[g] = 0
        fi
     :: else
     fi;
     may_switch();
     atomic {                                  // is it still garbage?
       if
       :: rc[g] != 1 -> g = 0
       :: else -> cyc = 0; tied = (tied == g -> 0 : tied)
       fi
     }
     if
     :: g != 0 ->                              // tp_clear, then the cycle's reference goes
        detach(g);
        w_decref_dead(g)
     :: else
     fi
  :: else
  fi;
  // "stop": give the guard list's references back.
  collecting = 0;
  do
  :: guard > 0 -> guard--; g = cyc; assert(g != 0); py_decref(g)
  :: else -> break
  od;
  g = 0;
  GIL_REL;
  running--
}
#endif

#ifdef SHUTDOWN
// atexit: Python waits for C++ threads that passed the check, never the reverse. Other Python
// threads may still run; they end before the interpreter does.
proctype at_exit() {
  LOCALS;
  GIL_ACQ;
#ifdef M_ONE_GATE
  closed = 1;
#endif
  closing = 1;
  readers == 0;
  closed = 1;
  inflight == 0;
  drain();
  GIL_REL;
  atomic { gil == 0 && pyrun == 0 -> over = 1; pend = 0 }
  running--
}
#endif

init {
  LOCALS;
  atomic {
    // Wrapper 1 is Active, held by the first Python thread, with a weak reference to it.
    mem[1] = 1; rc[1] = 1; hnd[1] = LIVE; wgen[1] = 1; merged[1] = 1; tinc[1] = 1;
    wr = 1; tied = 1; strong = 2;
#ifdef ADOPT
    pad = 1; slot_h[1] = 1; ours = 1; word[1] = 1;
#else
    word[0] = 1;
#endif
#ifdef CYCLE
    cyc = 1;
    run python(0); running++; pyrun++;
    run collector(); running++;
#else
    run python(1); running++; pyrun++;
#endif
#if NPY > 1
    run python(0); running++; pyrun++;
#endif
#ifdef WEAKPTR
    weak++;
    run cpp_weak(); running++;
#endif
#ifdef ADOPT
    run cpp_reuse(); running++;
#endif
#ifdef SHUTDOWN
    run at_exit(); running++;
#endif
    run cpp_drop(); running++
  }
  // Nothing lost, nothing kept.
  running == 0 && !pend;
  assert(head == 0);
#ifdef CYCLE
  GIL_ACQ;
  if
  :: cyc != 0 -> nw = cyc; cyc = 0; py_decref(nw)   // the next collection
  :: else
  fi;
  GIL_REL;
#endif
  assert(hmem == FREED && tied == 0 && guard == 0 && !slab);
  assert(!slot_h[1] && !slot_h[2] && word[0] == 0 && word[1] == 0 && word[2] == 0);
#ifdef SHUTDOWN
  assert(over)                                 // wrappers may be left behind, on purpose
#else
  assert(!mem[1] && !mem[2] && !mem[3] && !mem[4])
#endif
}
