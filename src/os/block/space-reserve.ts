/** Space of EPHEMERAL that is kept back for the system. */

/** The file that takes it. */
export const spaceReserve = '/var/system/reserve'

const largest = 64 * 2 ** 20
const share = 0.02

/** Bytes that are kept back of a file system of this size: a fiftieth, 64 MiB at most. */
export const reserveOf = (size: number): number => Math.min(largest, Math.floor(size * share))
