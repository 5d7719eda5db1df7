/** Commands and responses (TPM 2.0 part 1, 18). */
import { joined, sized, TpmReader, u8, u16, u32 } from './buffer.ts'
import { type CommandName, commandCodes, permanent, tags } from './constants.ts'
import { TpmError } from './response-code.ts'

/** The authorization of a command by one session. */
export interface Authorization {
  readonly session: number
  readonly nonce: Uint8Array
  readonly attributes: number
  readonly hmac: Uint8Array
}

/** An empty password. */
export const emptyPassword: Authorization = {
  session: permanent.password,
  nonce: new Uint8Array(),
  attributes: 0,
  hmac: new Uint8Array(),
}

/** A command. */
export interface Command {
  readonly name: CommandName
  readonly handles: readonly number[]
  readonly authorizations: readonly Authorization[]
  readonly parameters: Uint8Array
}

/** Encodes a command. */
export function writeCommand({ name, handles, authorizations, parameters }: Command): Uint8Array {
  const sessions = joined(
    ...authorizations.flatMap(({ session, nonce, attributes, hmac }) => [u32(session), sized(nonce), u8(attributes), sized(hmac)]),
  )
  const hasSessions = authorizations.length > 0
  const body = joined(
    ...[u32(commandCodes[name]), ...handles.map(u32)],
    ...(hasSessions ? [u32(sessions.length), sessions] : []),
    parameters,
  )
  return joined(u16(hasSessions ? tags.sessions : tags.noSessions), u32(6 + body.length), body)
}

/** What a session adds to a response. */
export interface Acknowledgement {
  readonly nonce: Uint8Array
  readonly attributes: number
  readonly hmac: Uint8Array
}

/** A response. */
export interface Response {
  /** The new object or session, where the command makes one. */
  readonly handle: number
  readonly parameters: Uint8Array
  readonly acknowledgements: readonly Acknowledgement[]
}

/** What a response is expected to consist of. */
export interface Expected {
  readonly name: CommandName
  readonly hasHandle: boolean
  readonly sessions: number
}

const headerSize = 10

/** Decodes the response to a command. Throws TpmError for a refusal, DecodeError for what is no response. */
export function readResponse(bytes: Uint8Array, { name, hasHandle, sessions }: Expected): Response {
  const reader = new TpmReader(bytes, 'TPM response')
  const tag = reader.u16()
  if (tag !== tags.sessions && tag !== tags.noSessions) throw reader.failure(`tag 0x${tag.toString(16)}`)
  const size = reader.u32()
  if (size !== bytes.length) throw reader.failure(`it has ${bytes.length} bytes and names ${size}`)
  const code = reader.u32()
  if (code !== 0) throw new TpmError(name, code)
  if ((tag === tags.sessions) !== sessions > 0) throw reader.failure('it has other sessions than the command')
  const handle = hasHandle ? reader.u32() : 0
  if (tag === tags.noSessions) return { handle, parameters: reader.rest(), acknowledgements: [] }
  const length = reader.u32()
  if (length > bytes.length - headerSize) throw reader.failure(`parameters of ${length} bytes`)
  const parameters = reader.take(length)
  const acknowledgements = Array.from({ length: sessions }, () => ({
    nonce: reader.sized(64),
    attributes: reader.u8(),
    hmac: reader.sized(64),
  }))
  reader.end()
  return { handle, parameters, acknowledgements }
}
