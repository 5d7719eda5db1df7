/** The longest delay of a timer in milliseconds (2^31 - 1, almost 25 days); a longer one fires at once. */
const longestDelay = 2 ** 31 - 1

/** Clamps a delay to what timers accept: from 0 to the longest. A caller with a longer delay checks again when it fires. */
export const timerDelay = (milliseconds: number): number => (milliseconds > 0 ? Math.min(milliseconds, longestDelay) : 0)
