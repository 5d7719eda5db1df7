import { expect, test } from 'bun:test'
import { silent } from '../../../../src/cosi/log.ts'
import { Sequencer } from '../../../../src/os/lifecycle/sequencer.ts'
import { Events } from '../../../../src/os/runtime/events.ts'
import { SequenceSpans } from '../../../../src/os/telemetry/traces/sequence-spans.ts'
import type { Span } from '../../../../src/os/telemetry/traces/span.ts'

/** The spans of the sequences that were run. */
async function spansOf(run: (sequencer: Sequencer) => Promise<void>): Promise<Span[]> {
  const events = new Events()
  await run(new Sequencer(events, silent))
  const spans: Span[] = []
  const stop = new AbortController()
  const following = new SequenceSpans({ add: (span) => void spans.push(span) }).follow(events, stop.signal)
  await new Promise(setImmediate)
  stop.abort()
  await following
  return spans
}

test('a sequence is a trace of its phases and their tasks', async () => {
  const task = { name: 'mount', run: () => {} }
  const spans = await spansOf((sequencer) =>
    sequencer.run('boot', [
      { name: 'volumes', tasks: [task] },
      { name: 'services', tasks: [] },
    ]),
  )
  expect(spans.map(({ name }) => name)).toEqual(['task mount', 'phase volumes', 'phase services', 'sequence boot'])
  const [mount, volumes, services, boot] = spans
  expect(new Set(spans.map(({ traceId }) => traceId)).size).toBe(1)
  expect(mount?.parentSpanId).toBe(String(volumes?.spanId))
  expect([volumes?.parentSpanId, services?.parentSpanId]).toEqual([boot?.spanId, boot?.spanId])
  expect(boot).toMatchObject({ kind: 'internal', parentSpanId: undefined, failure: undefined, attributes: { sequence: 'boot' } })
})

test('a failure is that of the task and of the sequence', async () => {
  const task = {
    name: 'mount',
    run() {
      throw new Error('no disk')
    },
  }
  const spans = await spansOf((sequencer) => sequencer.run('boot', [{ name: 'volumes', tasks: [task] }]).catch(() => {}))
  const failures = Object.fromEntries(spans.map(({ name, failure }) => [name, failure]))
  const why = expect.stringContaining('no disk')
  expect(failures).toEqual({ 'phase volumes': undefined, 'task mount': why, 'sequence boot': why })
})
