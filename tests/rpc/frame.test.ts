import { describe, expect, test } from 'bun:test'
import { constants } from 'node:os'
import fc from 'fast-check'
import { StoreError } from '../../src/cosi/errors.ts'
import { ConfigError } from '../../src/document/config-error.ts'
import { SystemError } from '../../src/linux/system-error.ts'
import {
  FrameReader,
  formatTimeout,
  frameHeader,
  maxMessage,
  parseTimeout,
  sealFrame,
  statusOf,
  statusTrailers,
} from '../../src/rpc/frame.ts'
import { metadataOf } from '../../src/rpc/metadata.ts'
import { RpcError, type StatusName, statusCode, toRpcError } from '../../src/rpc/status.ts'
import { anyText } from '../support/any-text.ts'
import { runs } from '../support/runs.ts'

function frame(message: Uint8Array): Buffer {
  return sealFrame(Buffer.concat([Buffer.alloc(frameHeader), message]))
}

describe('frames', () => {
  test('are assembled from pieces of any size', () => {
    fc.assert(
      fc.property(
        fc.array(fc.uint8Array({ maxLength: 100 }), { maxLength: 8 }),
        fc.array(fc.nat(40), { maxLength: 60 }),
        (messages, cuts) => {
          const stream = Buffer.concat(messages.map(frame))
          const reader = new FrameReader()
          const seen: Buffer[] = []
          let at = 0
          for (const cut of [...cuts, stream.length]) {
            for (const message of reader.push(stream.subarray(at, Math.min(stream.length, at + cut)))) seen.push(Buffer.from(message))
            at = Math.min(stream.length, at + cut)
          }
          reader.end()
          expect(seen).toEqual(messages.map((message) => Buffer.from(message)))
        },
      ),
    )
  })

  test('of any bytes yield messages or an RpcError', () => {
    fc.assert(
      fc.property(fc.array(fc.uint8Array({ maxLength: 50 })), (chunks) => {
        const reader = new FrameReader(1000)
        try {
          for (const chunk of chunks)
            for (const message of reader.push(Buffer.from(chunk))) expect(message.length).toBeLessThanOrEqual(1000)
          reader.end()
        } catch (error) {
          expect(error).toBeInstanceOf(RpcError)
        }
      }),
      { numRuns: runs(1000) },
    )
  })

  test('that are too large are refused by their header, before their bytes are read', () => {
    const header = Buffer.alloc(frameHeader)
    header.writeUInt32BE(maxMessage + 1, 1)
    expect(() => [...new FrameReader().push(header)]).toThrow('larger than the limit')
  })

  test('that are compressed are refused', () => {
    expect(() => [...new FrameReader().push(Buffer.from([1, 0, 0, 0, 0]))]).toThrow('only identity encoding')
  })
})

describe('the status of a call', () => {
  test('travels in trailers with any message', () => {
    fc.assert(
      fc.property(anyText(), fc.constantFrom(...(Object.keys(statusCode).slice(1) as StatusName[])), (message, status) => {
        const trailers = statusTrailers(new RpcError(status, message))
        for (const value of Object.values(trailers)) expect(value).toMatch(/^[\x20-\x7e]*$/)
        expect(statusOf(trailers)).toMatchObject({ status, message })
      }),
    )
  })

  test('that is missing is a failure', () => {
    expect(statusOf({})).toMatchObject({ status: 'Internal' })
    expect(statusOf({ 'grpc-status': '0' })).toBeUndefined()
  })

  test("of this system have the status their class declares, the runtime's the one of their code", () => {
    expect(toRpcError(new StoreError('not-found', 'gone')).status).toBe('NotFound')
    expect(toRpcError(new ConfigError([{ message: 'no' }])).status).toBe('InvalidArgument')
    expect(toRpcError(new SystemError('open', constants.errno.EACCES)).status).toBe('PermissionDenied')
    expect(toRpcError(new DOMException('stop', 'AbortError')).status).toBe('Canceled')
    expect(toRpcError(Object.assign(new Error('of another'), { reason: 'not-found' })).status).toBe('Unknown')
    expect(toRpcError(Object.assign(new Error('no'), { code: 'ENOENT' })).status).toBe('NotFound')
    expect(toRpcError(new Error('what')).status).toBe('Unknown')
  })
})

test('a timeout fits its header, whatever its size', () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 3_000_000_000 }), (milliseconds) => {
      const text = formatTimeout(milliseconds)
      expect(text).toMatch(/^\d{1,8}[mS]$/)
      expect(parseTimeout(text)!).toBeGreaterThanOrEqual(milliseconds)
    }),
  )
  expect(['', '5', '5x', '123456789m', '-1m', undefined].map(parseTimeout)).toEqual(Array.from({ length: 6 }, () => undefined))
})

test('metadata holds what the caller sent, not what the transport did', () => {
  const headers = { ':path': '/x', te: 'trailers', nodes: ['a', 'b'], text: 'c, d', 'data-bin': 'AA,BB', 'grpc-timeout': '1S' }
  expect({ ...metadataOf(headers) }).toEqual({ nodes: ['a', 'b'], text: ['c, d'], 'data-bin': ['AA', 'BB'] })
})
