/**
 * Settings of the runtime that suit processes of half a minute: code that the last compiler tier makes pays back later, and memory that
 * is given back to the system is needed again soon.
 */
export const unitSettings = { BUN_JSC_useFTLJIT: '0', MIMALLOC_PURGE_DELAY: '-1' }

/** The argument of `tests/unit.ts` that leaves them out. */
export const ownSettings = '--own-settings'
