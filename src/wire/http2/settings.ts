/** SETTINGS of both sides of a connection. RFC 9113, section 6.5. */
import { ConnectionError } from './error.ts'
import { defaultFrameSize, frameType, headerSize, writeHeader } from './frame.ts'

/** Settings by name; those that were not sent have the standard's default. */
export interface Settings {
  headerTableSize: number
  enablePush: boolean
  maxConcurrentStreams: number
  initialWindowSize: number
  maxFrameSize: number
  maxHeaderListSize: number
}

/** The largest window, and the largest stream id. */
export const maxInt31 = 0x7fff_ffff

/** The settings before any SETTINGS frame. */
export function defaultSettings(): Settings {
  return {
    headerTableSize: 4096,
    enablePush: true,
    maxConcurrentStreams: 0xffff_ffff,
    initialWindowSize: 65_535,
    maxFrameSize: defaultFrameSize,
    maxHeaderListSize: 0xffff_ffff,
  }
}

const identifiers: readonly (keyof Settings | undefined)[] = [
  undefined,
  'headerTableSize',
  'enablePush',
  'maxConcurrentStreams',
  'initialWindowSize',
  'maxFrameSize',
  'maxHeaderListSize',
]

/** The maximum number of settings in one frame: there are six. */
const maxEntries = 64

/** Applies a SETTINGS frame; unknown settings are skipped. Throws ConnectionError. */
export function applySettings(settings: Settings, payload: Buffer): void {
  if (payload.length % 6 !== 0) throw new ConnectionError('FRAME_SIZE_ERROR', `settings of ${payload.length} bytes`)
  if (payload.length > maxEntries * 6) throw new ConnectionError('ENHANCE_YOUR_CALM', `${payload.length / 6} settings in one frame`)
  for (let at = 0; at < payload.length; at += 6) {
    const name = identifiers[payload.readUInt16BE(at)]
    const value = payload.readUInt32BE(at + 2)
    if (name === undefined) continue
    if (name === 'enablePush') {
      if (value > 1) throw new ConnectionError('PROTOCOL_ERROR', `ENABLE_PUSH is ${value}`)
      settings.enablePush = value === 1
      continue
    }
    if (name === 'initialWindowSize' && value > maxInt31) throw new ConnectionError('FLOW_CONTROL_ERROR', `INITIAL_WINDOW_SIZE is ${value}`)
    if (name === 'maxFrameSize' && (value < defaultFrameSize || value > 0xff_ffff))
      throw new ConnectionError('PROTOCOL_ERROR', `MAX_FRAME_SIZE is ${value}`)
    settings[name] = value
  }
}

/** Encodes a SETTINGS frame. */
export function settingsFrame(settings: Partial<Settings>): Buffer {
  const entries = identifiers.flatMap((name, id) =>
    name !== undefined && settings[name] !== undefined ? [[id, Number(settings[name])]] : [],
  )
  const out = Buffer.alloc(headerSize + entries.length * 6)
  let at = writeHeader(out, 0, entries.length * 6, frameType.SETTINGS, 0, 0)
  for (const [id, value] of entries as [number, number][]) {
    at = out.writeUInt16BE(id, at)
    at = out.writeUInt32BE(value, at)
  }
  return out
}
