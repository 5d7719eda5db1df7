import { describe, expect, test } from 'bun:test'
import { background } from '../../src/cosi/background.ts'
import { createLogger, formatEntry, type LogEntry } from '../../src/cosi/log.ts'

const unhandled: unknown[] = []
process.on('unhandledRejection', (error) => unhandled.push(error))

function recording() {
  const entries: LogEntry[] = []
  return { entries, log: createLogger((entry) => entries.push(entry)) }
}

/** Rejections without a handler are reported after a turn of the event loop. */
const turn = () => new Promise((resolve) => setImmediate(resolve))

describe('background work', () => {
  test('that rejects becomes one log line with its fields', async () => {
    const { entries, log } = recording()
    background(Promise.reject(new Error('no route')), log, 'announce failed', { link: 'eth0' })
    await turn()
    expect(entries.map(formatEntry)).toEqual(['error: announce failed link=eth0 error="no route"'])
    expect(unhandled).toEqual([])
  })

  test('that throws before its first await becomes one log line', async () => {
    const { entries, log } = recording()
    background(() => {
      throw new Error('at once')
    }, log)
    background(async () => {
      throw new Error('later')
    }, log)
    await turn()
    expect(entries.map(({ fields }) => (fields.error as Error).message)).toEqual(['at once', 'later'])
  })

  test('that succeeds is silent', async () => {
    const { entries, log } = recording()
    background(Promise.resolve(1), log)
    background(() => 1, log)
    await turn()
    expect(entries).toEqual([])
  })

  test('does nothing when the log fails too', async () => {
    const broken = {
      error() {
        throw new Error('disk full')
      },
    }
    background(Promise.reject(new Error('first')), broken)
    await turn()
    expect(unhandled).toEqual([])
  })
})
