import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { ConnectionError } from '../../../src/wire/http2/error.ts'
import { content, FrameReader, flag, frameType, headerSize, writeHeader } from '../../../src/wire/http2/frame.ts'
import { applySettings, defaultSettings, type Settings, settingsFrame } from '../../../src/wire/http2/settings.ts'
import { runs } from '../../support/runs.ts'

interface Frame {
  type: number
  flags: number
  stream: number
  payload: Buffer
}

/** Reads frames from pieces; DATA is put together again. */
function read(pieces: readonly Buffer[], limit = 16_384): Frame[] {
  const frames: Frame[] = []
  let parts: Buffer[] = []
  const reader = new FrameReader(
    {
      begin() {},
      data(stream, piece, left, flags) {
        parts.push(piece)
        if (left > 0) return
        frames.push({ type: frameType.DATA, flags, stream, payload: Buffer.concat(parts) })
        parts = []
      },
      frame: (type, flags, stream, payload) => void frames.push({ type, flags, stream, payload: Buffer.from(payload) }),
    },
    limit,
  )
  for (const piece of pieces) reader.push(piece)
  return frames
}

function write({ type, flags, stream, payload }: Frame): Buffer {
  const out = Buffer.alloc(headerSize + payload.length)
  payload.copy(out, writeHeader(out, 0, payload.length, type, flags, stream))
  return out
}

/** Cuts bytes at these places. */
function cut(bytes: Buffer, places: readonly number[]): Buffer[] {
  const at = [0, ...places.map((place) => place % (bytes.length + 1)).sort((a, b) => a - b), bytes.length]
  return at.slice(1).map((end, index) => bytes.subarray(at[index], end))
}

const frame = fc.record({
  type: fc.nat(255),
  flags: fc.nat(255),
  stream: fc.nat(0x7fff_ffff),
  payload: fc.uint8Array({ maxLength: 300 }).map((bytes) => Buffer.from(bytes)),
})

describe('frames', () => {
  test('round-trip in pieces of any size', () => {
    fc.assert(
      fc.property(fc.array(frame, { maxLength: 10 }), fc.array(fc.nat(5000), { maxLength: 30 }), (frames, places) => {
        expect(read(cut(Buffer.concat(frames.map(write)), places))).toEqual(frames)
      }),
      { numRuns: runs(500), seed: 1 },
    )
  })

  test('that are too large are refused by their header', () => {
    const large = Buffer.alloc(headerSize)
    writeHeader(large, 0, 16_385, frameType.DATA, 0, 1)
    expect(() => read([large])).toThrow('frame of 16385 bytes is larger than the limit of 16384')
  })

  test('may have a stream number with the reserved bit', () => {
    const odd = write({ type: frameType.PING, flags: 0, stream: 5, payload: Buffer.alloc(8) })
    odd[5] = odd[5]! | 0x80
    expect(read([odd])[0]?.stream).toBe(5)
  })

  test('lose their padding and their priority', () => {
    const payload = Buffer.from([3, 0, 0, 0, 1, 16, 0x61, 0x62, 0, 0, 0])
    expect(content(frameType.HEADERS, flag.PADDED | flag.PRIORITY, payload).toString()).toBe('ab')
    expect(content(frameType.DATA, flag.PADDED, Buffer.from([0])).length).toBe(0)
    expect(() => content(frameType.DATA, flag.PADDED, Buffer.alloc(0))).toThrow(ConnectionError)
    expect(() => content(frameType.DATA, flag.PADDED, Buffer.from([2, 1]))).toThrow('padding is longer than the frame')
  })
})

describe('settings', () => {
  test('round-trip', () => {
    const settings = fc.record<Partial<Settings>>(
      {
        headerTableSize: fc.nat(),
        enablePush: fc.boolean(),
        maxConcurrentStreams: fc.nat(),
        initialWindowSize: fc.nat(0x7fff_ffff),
        maxFrameSize: fc.integer({ min: 16_384, max: 0xff_ffff }),
        maxHeaderListSize: fc.nat(),
      },
      { requiredKeys: [] },
    )
    fc.assert(
      fc.property(settings, (sent) => {
        const heard = defaultSettings()
        applySettings(heard, settingsFrame(sent).subarray(headerSize))
        expect(heard).toEqual({ ...defaultSettings(), ...sent })
      }),
    )
  })

  test.each([
    ['cut off', '00 04 00 00 00', 'FRAME_SIZE_ERROR'],
    ['a window beyond any', '00 04 80 00 00 00', 'FLOW_CONTROL_ERROR'],
    ['frames smaller than everyone takes', '00 05 00 00 3f ff', 'PROTOCOL_ERROR'],
    ['a push that is neither allowed nor not', '00 02 00 00 00 02', 'PROTOCOL_ERROR'],
    ['more of them than there are', '00 09 00 00 00 00'.repeat(65), 'ENHANCE_YOUR_CALM'],
  ])('with %s are refused', (_, hex, code) => {
    const payload = Buffer.from(hex.replaceAll(' ', ''), 'hex')
    expect(() => applySettings(defaultSettings(), payload)).toThrow(expect.objectContaining({ code }))
  })

  test('that are unknown are skipped', () => {
    const heard = defaultSettings()
    applySettings(heard, Buffer.from('ffff00000001', 'hex'))
    expect(heard).toEqual(defaultSettings())
  })
})
