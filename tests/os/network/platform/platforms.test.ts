import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import type { PlatformTransport } from '../../../../src/os/network/platform/platform.ts'
import { PlatformConfigError } from '../../../../src/os/network/platform/platform-config.ts'
import { platforms } from '../../../../src/os/network/platform/platforms.ts'
import { runs } from '../../../support/runs.ts'
import { expected, nics, platformIn, type Recording, recordings, summaryOf, userData } from './recordings.ts'

/** The transport of a machine on a recorded platform. */
function on({ answers = {}, disks = {}, optical = {}, guestinfo = {}, serial = '' }: Omit<Recording, 'want'>): PlatformTransport {
  return {
    async fetch(url, { method = 'GET', headers = {}, body } = {}) {
      const answer = answers[url]
      return typeof answer === 'function' ? answer({ method, headers, body }) : answer
    },
    async disk(labels, files) {
      const label = labels.find((one) => one in disks)
      return label && new Map(files.flatMap((name) => (disks[label]![name] === undefined ? [] : [[name, disks[label]![name]!]])))
    },
    optical: async (_, files) => {
      const all = Object.values(optical).find((one) => files.some((name) => name in one)) ?? {}
      const held = files.flatMap((name): [string, string][] => (all[name] === undefined ? [] : [[name, all[name]]]))
      return held.length > 0 ? new Map(held) : undefined
    },
    guestinfo: async (key) => guestinfo[key],
    links: nics,
    serial,
    commandLine: '',
  } as PlatformTransport
}

describe('the metadata of a platform', () => {
  for (const [name, one] of Object.entries(recordings)) {
    const platform = platforms[platformIn(name)]!
    test(`${name}: becomes its layer`, async () => {
      expect(summaryOf(await platform.network(on(one)))).toEqual(expected(one))
    })
    test(`${name}: holds the machine configuration`, async () => {
      expect(await platform.userData(on(one))).toBe(userData)
    })
    test(`${name}: may be nearly nothing`, async () => {
      if (Object.keys(one.answers ?? {}).length === 0) return
      const found = summaryOf(await platform.network(on({ serial: one.serial })))
      expect(found.addresses).toEqual([])
      expect(found.metadata).toEqual({ platform: platformIn(name) })
      expect(await platform.userData(on({ serial: one.serial }))).toBeUndefined()
    })
  }

  test('receives a readiness report, if it waits for one', async () => {
    expect(
      new Set(
        Object.keys(recordings)
          .map(platformIn)
          .filter((name) => platforms[name]?.ready),
      ),
    ).toEqual(new Set(['azure']))
    const { ready } = platforms.azure!
    await ready!(on(recordings.azure!))
    await expect(ready!(on({ answers: {} }))).rejects.toThrow('read azure goal state: missing')
    const deaf = Object.fromEntries(Object.entries(recordings.azure!.answers!).filter(([url]) => !url.endsWith('health')))
    await expect(ready!(on({ answers: deaf }))).rejects.toThrow('accepts no reports')
  })

  test('every platform has a recording here', () => {
    expect(Object.keys(platforms).toSorted()).toEqual([...new Set(Object.keys(recordings).map(platformIn))].toSorted())
  })
})

/** Bends a text here and there. */
const bent = (text: string) =>
  fc.oneof(
    fc.nat(text.length).map((end) => text.slice(0, end)),
    fc.tuple(fc.nat(text.length), fc.string({ maxLength: 8 })).map(([at, what]) => text.slice(0, at) + what + text.slice(at + what.length)),
    fc.json().map((value) => value),
    fc.constant(text.replaceAll(/\d+\.\d+\.\d+\.\d+/g, '999.1.2.3')),
    fc.constant(text.replaceAll(/:\s*"/g, ':["')),
    fc.constant('x'.repeat(2 << 20)),
  )

describe('invalid platform metadata', () => {
  for (const [name, one] of Object.entries(recordings))
    test(`${name}: is refused in one line, or believed, and never more`, async () => {
      const platform = platforms[platformIn(name)]!
      const twisted = fc.record({
        answers: fc.record(
          Object.fromEntries(
            Object.entries(one.answers ?? {}).map(([url, answer]) => {
              const text = typeof answer === 'string' ? answer : (answer({ method: 'GET', headers: headersOf(url, one) }) ?? 'token')
              return [url, fc.oneof({ weight: 3, arbitrary: fc.constant(text) }, { weight: 1, arbitrary: bent(text) })]
            }),
          ),
        ),
        disks: fc.record(
          Object.fromEntries(
            Object.entries(one.disks ?? {}).map(([label, files]) => [
              label,
              fc.record(Object.fromEntries(Object.entries(files).map(([file, text]) => [file, fc.oneof(fc.constant(text), bent(text))]))),
            ]),
          ),
        ),
        guestinfo: fc.record(
          Object.fromEntries(Object.entries(one.guestinfo ?? {}).map(([key, text]) => [key, fc.oneof(fc.constant(text), bent(text))])),
        ),
      })
      await fc.assert(
        fc.asyncProperty(twisted, async (lies) => {
          for (const read of [platform.network, platform.userData])
            try {
              await read(on({ ...lies, serial: one.serial }))
            } catch (error) {
              if (!(error instanceof PlatformConfigError) && !(error as Error).message.startsWith('opennebula')) throw error
              expect((error as Error).message).not.toContain('\n')
            }
        }),
        { numRuns: runs(60) },
      )
    })
})

/** What a platform's own requests carry: the answers of the real ones ask for it. */
function headersOf(_url: string, { answers = {} }: Recording): Record<string, string> {
  const all = {
    'x-aws-ec2-metadata-token': 'token-1',
    metadata: 'true',
    'metadata-flavor': 'Google',
    authorization: 'Bearer Oracle',
    'metadata-token': 'token-2',
  }
  return Object.keys(answers).length === 0 ? {} : all
}
