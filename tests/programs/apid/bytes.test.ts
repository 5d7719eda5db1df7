import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { systemClock } from '../../../src/cosi/clock.ts'
import { failedReply, markMessage, markReply } from '../../../src/programs/apid/merge.ts'
import { forwardedHeaders, routeOf } from '../../../src/programs/apid/routing.ts'
import { decode, encode } from '../../../src/rpc/codec.ts'
import type { common, machine } from '../../../src/rpc/messages.ts'
import { messageType } from '../../../src/rpc/schema.ts'
import { RpcError } from '../../../src/rpc/status.ts'
import { ProtoError } from '../../../src/rpc/wire.ts'
import { anyText } from '../../support/any-text.ts'
import { runs } from '../../support/runs.ts'

const services = messageType('machine.ServiceListResponse')

describe('a reply', () => {
  test('is marked within its message, which stays what it was', () => {
    fc.assert(
      fc.property(
        fc.array(fc.record({ id: fc.string(), state: fc.string() }), { maxLength: 20 }),
        fc.string({ maxLength: 300 }),
        (list, node) => {
          const reply = encode(services, { messages: [{ services: list }] })
          const marked = decode(services, markReply(reply, node)) as unknown as machine.ServiceListResponse
          expect(marked.messages).toHaveLength(1)
          expect(marked.messages[0]?.metadata?.hostname).toBe(node)
          expect(marked.messages[0]?.services.map(({ id, state }) => ({ id, state }))).toEqual(list)
        },
      ),
    )
  })

  test('without any message gets one, so that the node is not forgotten', () => {
    expect(decode(services, markReply(Buffer.alloc(0), 'n'))).toMatchObject({ messages: [{ metadata: { hostname: 'n' }, services: [] }] })
  })

  test('with fields of its own keeps them', () => {
    const reply = Buffer.concat([Buffer.from([0x10, 0x05]), encode(services, { messages: [{}] }), Buffer.from([0x1a, 0x01, 0x61])])
    const marked = markReply(reply, 'n')
    expect(marked.subarray(0, 2)).toEqual(Buffer.from([0x10, 0x05]))
    expect(marked.subarray(-3)).toEqual(Buffer.from([0x1a, 0x01, 0x61]))
  })

  test('of one node after that of another is the reply of both', () => {
    const first = markReply(encode(services, { messages: [{ services: [{ id: 'a' }] }] }), 'one')
    const second = failedReply('two', new RpcError('Unavailable', 'away'))
    const { messages } = decode(services, Buffer.concat([first, second])) as unknown as machine.ServiceListResponse
    expect(messages.map(({ metadata }) => metadata?.hostname)).toEqual(['one', 'two'])
    expect(messages[1]?.metadata).toMatchObject({
      error: 'rpc error: code = Unavailable desc = away',
      status: { code: 14, message: 'away' },
    })
  })

  test('of any bytes is marked or refused with a ProtoError', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => {
        try {
          markReply(bytes, 'node')
        } catch (error) {
          expect(error).toBeInstanceOf(ProtoError)
        }
      }),
      { numRuns: runs(1000) },
    )
  })
})

test('a streamed message is marked at its end', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 1000 }), fc.string(), (bytes, node) => {
      const message = encode(messageType('common.Data'), { bytes })
      const marked = decode(messageType('common.Data'), markMessage(message, node)) as unknown as common.Data
      expect(marked.metadata?.hostname).toBe(node)
      expect(Buffer.from(marked.bytes)).toEqual(Buffer.from(bytes))
    }),
  )
})

describe('routing metadata', () => {
  const header = fc.option(fc.oneof(anyText(), fc.constantFrom('10.0.0.1', 'a,b', 'node-1', '::1')), { nil: undefined })

  test('of any kind gives a route or a refusal', () => {
    fc.assert(
      fc.property(header, header, header, fc.boolean(), (node, nodes, proxyfrom, forwards) => {
        const headers = {
          ':path': '/machine.MachineService/Version',
          ...(node !== undefined && { node }),
          ...(nodes !== undefined && { nodes }),
          ...(proxyfrom !== undefined && { proxyfrom }),
        }
        try {
          const route = routeOf(headers, { forwards, isOwn: (target) => target === 'node-1' })
          if (!forwards && route.kind !== 'local') {
            expect(route.kind).toBe('many')
            if (route.kind === 'many') expect(new Set(route.targets)).toEqual(new Set(['node-1']))
          }
        } catch (error) {
          expect(error).toBeInstanceOf(RpcError)
          expect(['InvalidArgument', 'PermissionDenied']).toContain((error as RpcError).status)
        }
      }),
      { numRuns: runs(1000) },
    )
  })

  test('never goes on, and roles are those of the certificate', () => {
    fc.assert(
      fc.property(header, header, (role, node) => {
        const headers = { ':path': '/x', ':authority': 'gateway', 'talos-role': role ?? '', node: node ?? '', nodes: 'x', other: 'kept' }
        const out = forwardedHeaders(headers, { roles: ['os:reader'], impersonator: false }, true)
        expect(out).toEqual({
          ':method': 'POST',
          ':scheme': 'http',
          ':path': '/x',
          ':authority': 'localhost',
          'talos-role': ['os:reader'],
          proxyfrom: 'gateway',
          other: 'kept',
        } as never)
      }),
    )
  })

  test('adds the age of the last connection for this node, whatever the caller sends, and for no other node', () => {
    const headers = { ':path': '/x', 'ichor-connection-age': '0' }
    const client = { roles: ['os:admin' as const], impersonator: true, since: systemClock.elapsed() - 5000 }
    expect(Number(forwardedHeaders(headers, client, false)['ichor-connection-age'])).toBeGreaterThanOrEqual(5000)
    expect(forwardedHeaders(headers, client, true)['ichor-connection-age']).toBeUndefined()
  })

  test('names the authority of the first caller, whatever the caller sends, and the one forwarded by another node', () => {
    const headers = { ':path': '/x', 'ichor-caller-authority': 'claimed' }
    const of = (impersonator: boolean, authority?: string) =>
      forwardedHeaders(headers, { roles: ['os:admin'], impersonator, ...(authority && { authority }) }, false)['ichor-caller-authority']
    expect([of(false), of(false, 'own'), of(true, 'own')]).toEqual([undefined, 'own', 'claimed'])
  })

  test('believes an impersonator, but only what is a role', () => {
    const out = forwardedHeaders(
      { ':path': '/x', 'talos-role': 'os:admin, root, os:reader' },
      { roles: ['os:impersonator'], impersonator: true },
      false,
    )
    expect(out['talos-role']).toEqual(['os:admin', 'os:reader'])
  })
})
