/** After a change that may have cut the node off the client comes back and confirms it, or reports why not. */
import { afterAll, describe, expect, test } from 'bun:test'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Method, unary } from '../../../../src/rpc/server/method.ts'
import { RpcError } from '../../../../src/rpc/status.ts'
import { config } from '../../../os/config/machine.ts'
import { node, talosctl } from '../peer.ts'

const folder = mkdtempSync(join(tmpdir(), 'ichor-reaching-'))
afterAll(() => rmSync(folder, { recursive: true }))
const file = join(folder, 'config.yaml')
writeFileSync(file, config('worker'))

const admin = ['os:admin'] as const

/** A node that must be reached again, and its reply to that. */
function wary(confirm: () => number, { outcome = 'confirmed', within: reachWithin = { seconds: 60, nanos: 0 } } = {}) {
  const seen: { noConfirm?: boolean; reconnects?: boolean; fresh?: readonly string[] | undefined }[] = []
  const methods: Method[] = [
    unary('ichor.v1.ConfigService/Apply', admin, ({ noConfirm, reconnects }) => {
      seen.push({ noConfirm, reconnects })
      const within = noConfirm ? {} : { reachWithin, reachAfter: { seconds: 0, nanos: 0 } }
      return { messages: [{ details: 'Applied configuration without a reboot', id: 7, ...within }] }
    }),
    unary('ichor.v1.ConfigService/Confirm', admin, (_, context) => {
      seen.push({ fresh: context.metadata['ichor-new-connection'] })
      return { messages: [{ id: confirm() }] }
    }),
    unary('ichor.v1.ConfigService/History', admin, () => ({
      messages: [{ entries: [{ id: 7, mode: 'auto', outcome, reason: 'the machine was not reached after it' }] }],
    })),
  ]
  return { seen, run: (...flags: string[]) => talosctl(methods, ['apply-config', '-f', file, ...flags], { nodes: [node] }) }
}

test('the configuration is confirmed over a connection of its own', async () => {
  const { seen, run } = wary(() => 7)
  expect(await run()).toEqual({ code: 0, stdout: '', stderr: 'Applied configuration without a reboot\n' })
  expect(seen).toEqual([{ noConfirm: false, reconnects: true }, { fresh: ['1'] }])
})

test('with --no-confirm nobody comes back', async () => {
  const { seen, run } = wary(() => 7)
  expect((await run('--no-confirm')).code).toBe(0)
  expect(seen).toEqual([{ noConfirm: true, reconnects: true }])
})

test('a node that is not reached in time is an error that states the consequence', async () => {
  const { run } = wary(
    () => {
      throw new RpcError('FailedPrecondition', 'this connection is older than the change')
    },
    { within: { seconds: 0, nanos: 50_000_000 } },
  )
  const { code, stderr } = await run()
  expect([code, stderr]).toEqual([1, expect.stringContaining('it goes back to the configuration before by itself; "--no-confirm" keeps')])
})

test('what somebody else confirmed is confirmed, and what was reverted is reported with the reason', async () => {
  const gone = () => {
    throw new RpcError('NotFound', 'none waits to be confirmed')
  }
  expect((await wary(gone).run()).code).toBe(0)
  const { code, stderr } = await wary(gone, { outcome: 'reverted' }).run()
  expect([code, stderr]).toEqual([1, expect.stringContaining('configuration 7 was reverted: the machine was not reached after it')])
})

test('the outcome is queried again until the node answers', async () => {
  let called = 0
  const methods: Method[] = [
    unary('ichor.v1.ConfigService/Apply', admin, () => {
      const reachWithin = { seconds: 60, nanos: 0 }
      return { messages: [{ details: 'Applied', id: 7, reachWithin, reachAfter: { seconds: 0, nanos: 0 } }] }
    }),
    unary('ichor.v1.ConfigService/Confirm', admin, () => {
      throw new RpcError('NotFound', 'none waits to be confirmed')
    }),
    unary('ichor.v1.ConfigService/History', admin, () => {
      if (called++ === 1) throw new RpcError('Unavailable', 'ECONNRESET')
      return { messages: [{ entries: [{ id: 7, mode: 'auto', outcome: 'reverted', reason: 'not reached' }] }] }
    }),
  ]
  const { code, stderr } = await talosctl(methods, ['apply-config', '-f', file], { nodes: [node] })
  expect([code, stderr]).toEqual([1, expect.stringContaining('configuration 7 was reverted: not reached')])
  expect(called).toBe(3)
})

describe('an answer that was lost', () => {
  /** A node of which no answer comes, and what its history has before and after. */
  function silent(outcome: string | undefined, confirm: () => number = () => 8, trouble?: RpcError) {
    let called = false
    let looked = 0
    const entry = (id: number, more = {}) => ({ id, mode: 'auto', ...more })
    const methods: Method[] = [
      unary('ichor.v1.ConfigService/Apply', admin, () => {
        called = true
        throw new RpcError('Unavailable', 'backend connection: no response within 10000 ms')
      }),
      unary('ichor.v1.ConfigService/Confirm', admin, () => ({ messages: [{ id: confirm() }] })),
      unary('ichor.v1.ConfigService/History', admin, () => {
        if (looked++ === 1 && trouble) throw trouble
        return { messages: [{ entries: [...(called && outcome !== undefined ? [entry(8, { outcome })] : []), entry(7)] }] }
      }),
    ]
    return talosctl(methods, ['apply-config', '-f', file], { nodes: [node] })
  }
  const gone = () => {
    throw new RpcError('NotFound', 'none waits to be confirmed')
  }

  test('of a configuration that the node took is no error: it is confirmed, or needs no confirmation', async () => {
    const reply = { code: 0, stdout: '', stderr: 'the answer was lost, and the configuration is in force\n' }
    expect(await silent('pending')).toEqual(reply)
    expect(await silent('', gone)).toEqual(reply)
  })

  test('of one that the node never took is the error that it was', async () => {
    const { code, stderr } = await silent(undefined)
    expect([code, stderr]).toEqual([1, expect.stringContaining('no response within 10000 ms')])
  })

  test('of one that was reverted is reported with the reason', async () => {
    const { code, stderr } = await silent('reverted', gone)
    expect([code, stderr]).toEqual([1, expect.stringContaining('configuration 8 was reverted')])
    const again = await silent('reverted', gone, new RpcError('Unknown', 'ECONNRESET'))
    expect([again.code, again.stderr]).toEqual([1, expect.stringContaining('configuration 8 was reverted')])
  })
})
