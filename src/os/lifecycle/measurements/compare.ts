/** How the events of a PCR differ from those of another start. */
import type { SpecOf } from '../../../cosi/resource.ts'
import type { PCRMeasurement } from '../../hardware/resources/pcr-measurement.ts'
import type { PCRChange } from '../resources/pcr-change.ts'

/** What is compared. */
export type Measured = Pick<SpecOf<typeof PCRMeasurement>, 'value' | 'explained' | 'events'>
type Event = Measured['events'][number]
type Change = SpecOf<typeof PCRChange>['changes'][number]

/** A PCR that was not in use. */
const unused: Measured = { value: '', explained: true, events: [] }

/** Characters of a digest where nothing else is known. */
const shownDigits = 16

/** The differences, in the order of the later events. Phases are left out: within a start they come one after another. */
export function differences(before: Measured = unused, after: Measured = unused): Change[] {
  const found = compareEvents(measuredBefore(before), measuredBefore(after))
  const isExplained = before.explained && after.explained
  return found.length > 0 || isExplained || before.value === after.value ? found : [{ kind: 'unlogged' }]
}

const measuredBefore = ({ events }: Measured): Event[] => events.filter(({ type }) => type !== 'phase')

function compareEvents(before: readonly Event[], after: readonly Event[]): Change[] {
  const same = Pairs.of(before, after, ({ type, digest }) => `${type} ${digest}`)
  const named = Pairs.of(same.before, same.after, ({ type, subject }) => `${type} ${subject}`)
  const alike = Pairs.of(named.before, named.after, ({ type }) => type)
  const added = alike.after.map((event): [Event, Change] => [event, { kind: 'added', ...about(event), after: contentOf(event) }])
  const changed = [
    ...named.pairs.map(([old, event]): [Event, Change] => [event, { kind: 'changed', ...about(event), ...contents(old, event) }]),
    ...alike.pairs.map(([old, event]): [Event, Change] => [event, { kind: 'changed', type: event.type, ...wholes(old, event) }]),
  ]
  const removed = alike.before.map((event): Change => ({ kind: 'removed', ...about(event), before: contentOf(event) }))
  const places = new Map(after.map((event, at) => [event, at]))
  const place = ([event]: readonly [Event, Change]) => places.get(event) ?? 0
  const found = [...[...added, ...changed].sort((a, b) => place(a) - place(b)).map(([, change]) => change), ...removed]
  if (found.length > 0 || after.every((event, at) => isSame(before[at], event))) return found
  return [{ kind: 'order' }]
}

const isSame = (a: Event | undefined, b: Event): boolean => a?.type === b.type && a.digest === b.digest

const about = ({ type, subject }: Event) => ({ type, subject })

const digestText = ({ digest }: Event): string => `${digest.slice(0, shownDigits)}…`

const contentOf = (event: Event): string => event.detail ?? digestText(event)

/** The details, unless they hide the difference. */
function contents(before: Event, after: Event): { before: string; after: string } {
  if (contentOf(before) !== contentOf(after)) return { before: contentOf(before), after: contentOf(after) }
  return { before: digestText(before), after: digestText(after) }
}

function wholes(before: Event, after: Event): { before: string; after: string } {
  const whole = ({ subject, detail }: Event) => (detail === undefined ? subject : `${subject} ${detail}`)
  return { before: whole(before) || digestText(before), after: whole(after) || digestText(after) }
}

/** Events of two starts, paired in their order by a key; each list is passed once. */
class Pairs {
  private constructor(
    readonly pairs: readonly (readonly [Event, Event])[],
    /** What is in one of them only. */
    readonly before: readonly Event[],
    readonly after: readonly Event[],
  ) {}

  static of(before: readonly Event[], after: readonly Event[], keyOf: (event: Event) => string): Pairs {
    const waiting = Map.groupBy(before, keyOf)
    // Taken from the end, which costs nothing.
    for (const events of waiting.values()) events.reverse()
    const pairs: [Event, Event][] = []
    const left: Event[] = []
    for (const event of after) {
      const match = waiting.get(keyOf(event))?.pop()
      if (match) pairs.push([match, event])
      else left.push(event)
    }
    const paired = new Set(pairs.map(([event]) => event))
    return new Pairs(
      pairs,
      before.filter((event) => !paired.has(event)),
      left,
    )
  }
}
