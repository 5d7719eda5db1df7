/** The longest delay a timer takes, in milliseconds (2^31 - 1, almost 25 days); with a longer one it fires at once. */
const longestDelay = 2 ** 31 - 1

/** A delay as timers take it: at least 0, at most the longest. A caller that waits for longer looks again when it fires. */
export const timerDelay = (milliseconds: number): number => (milliseconds > 0 ? Math.min(milliseconds, longestDelay) : 0)
