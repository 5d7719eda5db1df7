/** The server's side of authentication before the first message (D-Bus specification, "Authentication Protocol"): EXTERNAL only. */
import { DecodeError } from '../decode-error.ts'

/** The most bytes of one line. */
const maxLine = 512
/** The most lines before BEGIN: clients send four or five. */
const maxLines = 16

/** What the server learns from a piece of input. */
export interface AuthenticationStep {
  /** Bytes of the input that belong to authentication. */
  readonly used: number
  /** Lines to send, each with its end. */
  readonly replies: string
  /** Messages begin after `used`. */
  readonly done: boolean
}

/** Authenticates one client, who is known by the kernel: EXTERNAL names the user that the socket's credentials show. */
export class DbusAuthentication {
  #begun = false
  #waitsForData = false
  #accepted = false
  #lines = 0

  constructor(
    /** 32 hexadecimal digits that identify the server. */
    readonly guid: string,
  ) {}

  /** Reads complete lines. Throws DecodeError when a client breaks the protocol. */
  receive(bytes: Uint8Array): AuthenticationStep {
    let used = 0
    let replies = ''
    if (!this.#begun) {
      if (bytes.length === 0) return { used, replies, done: false }
      if (bytes[0] !== 0) throw new DecodeError('D-Bus authentication', 0, 'the first byte is not NUL')
      this.#begun = true
      used = 1
    }
    for (;;) {
      const end = bytes.indexOf(0x0a, used)
      if (end < 0 && bytes.length - used > maxLine)
        throw new DecodeError('D-Bus authentication', used, `a line of more than ${maxLine} bytes`)
      if (end < 0) return { used, replies, done: false }
      if (++this.#lines > maxLines) throw new DecodeError('D-Bus authentication', used, `more than ${maxLines} lines`)
      const line = Buffer.from(bytes.subarray(used, end)).toString('latin1').trimEnd()
      const at = used
      used = end + 1
      if (line === 'BEGIN') {
        if (!this.#accepted) throw new DecodeError('D-Bus authentication', at, 'BEGIN before OK')
        return { used, replies, done: true }
      }
      replies += `${this.#reply(line)}\r\n`
    }
  }

  #reply(line: string): string {
    const [command = '', mechanism, response] = line.split(' ')
    const waited = this.#waitsForData
    this.#waitsForData = false
    if (command === 'AUTH' && mechanism === 'EXTERNAL' && response === undefined) {
      // No initial response: an empty challenge requests it.
      this.#waitsForData = true
      return 'DATA'
    }
    if ((command === 'AUTH' && mechanism === 'EXTERNAL') || (command === 'DATA' && waited)) {
      this.#accepted = true
      return `OK ${this.guid}`
    }
    if (command === 'AUTH' || command === 'CANCEL') return 'REJECTED EXTERNAL'
    if (command === 'NEGOTIATE_UNIX_FD' && this.#accepted) return 'AGREE_UNIX_FD'
    return 'ERROR'
  }
}
