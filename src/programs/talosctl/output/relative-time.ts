const second = 1000
const minute = 60 * second
const hour = 60 * minute
const day = 24 * hour
const week = 7 * day
const month = 30 * day
const year = 12 * month

// up to which distance a unit is used, and its milliseconds; 0 is shown as one
const steps: readonly [limit: number, unit: number, word: string][] = [
  [2 * second, 0, 'second'],
  [minute, second, 'seconds'],
  [2 * minute, 0, 'minute'],
  [hour, minute, 'minutes'],
  [2 * hour, 0, 'hour'],
  [day, hour, 'hours'],
  [2 * day, 0, 'day'],
  [week, day, 'days'],
  [2 * week, 0, 'week'],
  [month, week, 'weeks'],
  [2 * month, 0, 'month'],
  [year, month, 'months'],
  [18 * month, 0, 'year'],
]
const longest = [Number.POSITIVE_INFINITY, year, 'years'] as const

/** How far a moment is away, in words: "3 days ago", "1 year from now". */
export function relativeTime(moment: Date, now: Date): string {
  const distance = Math.abs(moment.getTime() - now.getTime())
  if (distance < second) return 'now'
  const [, unit, word] = steps.find(([limit]) => distance < limit) ?? longest
  const count = unit === 0 ? 1 : Math.max(2, Math.floor(distance / unit))
  return `${count} ${word} ${moment < now ? 'ago' : 'from now'}`
}
