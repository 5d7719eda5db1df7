/** Schedules as crontab(5) writes them: five fields in UTC, `@hourly` and the like, or `@every 6h`. */
import { parseDuration } from '../wire/duration.ts'

/** When something is due. */
export interface Schedule {
  /** The first moment after a given one. */
  next(after: Date): Date
}

const named: Readonly<Record<string, string>> = {
  '@hourly': '0 * * * *',
  '@daily': '0 0 * * *',
  '@midnight': '0 0 * * *',
  '@weekly': '0 0 * * 0',
  '@monthly': '0 0 1 * *',
  '@yearly': '0 0 1 1 *',
  '@annually': '0 0 1 1 *',
}
const minute = 60_000
/** The range of each field; a day of the week may be 7, for Sunday. */
const ranges = [
  [0, 59],
  [0, 23],
  [1, 31],
  [1, 12],
  [0, 7],
] as const
/** Steps in which the next moment is found: February 29 may be eight years away. */
const mostSteps = 4000

/** Reads a schedule; undefined for what is none, or never comes. `@every` takes a minute or more. */
export function parseSchedule(text: string): Schedule | undefined {
  const [word = '', span = '', ...others] = text.trim().split(/\s+/)
  if (word === '@every') {
    const milliseconds = (parseDuration(span) ?? 0) / 1e6
    if (others.length > 0 || milliseconds < minute) return undefined
    return { next: (after) => new Date(after.getTime() + milliseconds) }
  }
  const fields = (named[text.trim()] ?? text).trim().split(/\s+/)
  const sets = ranges.map(([least, most], index) => valuesOf(fields[index] ?? '', least, most))
  const [minutes, hours, days, months, weekdays] = sets
  if (fields.length !== ranges.length || !minutes || !hours || !days || !months || !weekdays) return undefined
  if (weekdays.has(7)) weekdays.add(0)
  // Where both are restricted, a day matches by either.
  const either = fields[2] !== '*' && fields[4] !== '*'
  const isDay = (at: Date) => {
    const [ofMonth, ofWeek] = [days.has(at.getUTCDate()), weekdays.has(at.getUTCDay())]
    return either ? ofMonth || ofWeek : ofMonth && ofWeek
  }
  const next = (after: Date): Date | undefined => {
    let at = new Date(Math.floor(after.getTime() / minute) * minute + minute)
    for (let step = 0; step < mostSteps; step++) {
      const [year, month, day, hour] = [at.getUTCFullYear(), at.getUTCMonth(), at.getUTCDate(), at.getUTCHours()]
      if (!months.has(month + 1)) at = new Date(Date.UTC(year, month + 1, 1))
      else if (!isDay(at)) at = new Date(Date.UTC(year, month, day + 1))
      else if (!hours.has(hour)) at = new Date(Date.UTC(year, month, day, hour + 1))
      else if (!minutes.has(at.getUTCMinutes())) at = new Date(at.getTime() + minute)
      else return at
    }
    return undefined
  }
  const never = new Date(8.64e15)
  return next(new Date(0)) && { next: (after) => next(after) ?? never }
}

/** The values of a field: `*`, `5`, `1-5`, each with a step behind `/`, and lists of them. */
function valuesOf(field: string, least: number, most: number): Set<number> | undefined {
  const values = new Set<number>()
  for (const part of field.split(',')) {
    const match = /^(?:\*|(\d{1,2})(?:-(\d{1,2}))?)(?:\/(\d{1,2}))?$/.exec(part)
    if (!match) return undefined
    const [, first, last, step] = match
    const from = first === undefined ? least : Number(first)
    // A single value with a step goes on to the end.
    const to = first === undefined ? most : last !== undefined ? Number(last) : step === undefined ? from : most
    const by = step === undefined ? 1 : Number(step)
    if (from < least || to > most || from > to || by === 0) return undefined
    for (let value = from; value <= to; value += by) values.add(value)
  }
  return values
}
