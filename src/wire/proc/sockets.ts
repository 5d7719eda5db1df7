import { DecodeError } from '../decode-error.ts'
import { formatIp } from '../ip.ts'
import { decimal, fields, hexadecimal, lines } from './lines.ts'

/** One socket of /proc/net/tcp, udp, raw and their IPv6 variants. */
export interface SocketEntry {
  localIp: string
  localPort: number
  remoteIp: string
  remotePort: number
  /** TCP_ESTABLISHED is 1, … TCP_LISTEN 10, … */
  state: number
  txQueue: number
  rxQueue: number
  /** Timer: 0 none, 1 retransmit, 2 keepalive, 3 TIME_WAIT, 4 zero window. */
  timer: number
  timerWhen: number
  retransmits: number
  uid: number
  timeout: number
  inode: number
  references: number
  pointer: string
}

// 32-bit words in host byte order (little endian on both supported machines).
function address(text: string | undefined, offset: number): { ip: string; port: number } {
  const [, hex = '', port] = /^([0-9A-F]{8}|[0-9A-F]{32}):([0-9A-F]{4})$/i.exec(text ?? '') ?? []
  if (port === undefined) throw new DecodeError('net socket', offset, `"${text ?? ''}" is no address`)
  const bytes = Buffer.from(hex, 'hex')
  return { ip: formatIp(bytes.swap32()), port: hexadecimal('net socket', port, offset) }
}

/** Parses /proc/net/{tcp,udp,udplite,raw}{,6} (proc_pid_net(5)). */
export function parseSockets(text: string): SocketEntry[] {
  return lines('net socket', text, 1 << 18)
    .slice(1) // headings
    .map(({ text: line, offset }) => {
      const words = fields(line)
      if (words.length < 10) throw new DecodeError('net socket', offset, 'too few fields')
      const pair = (word: string | undefined): [number, number] => {
        const [left, right] = (word ?? '').split(':')
        return [hexadecimal('net socket', left, offset), hexadecimal('net socket', right, offset)]
      }
      const local = address(words[1], offset)
      const remote = address(words[2], offset)
      const [txQueue, rxQueue] = pair(words[4])
      const [timer, timerWhen] = pair(words[5])
      return {
        localIp: local.ip,
        localPort: local.port,
        remoteIp: remote.ip,
        remotePort: remote.port,
        state: hexadecimal('net socket', words[3], offset),
        txQueue,
        rxQueue,
        timer,
        timerWhen,
        retransmits: hexadecimal('net socket', words[6], offset),
        uid: decimal('net socket', words[7], offset),
        timeout: decimal('net socket', words[8], offset),
        inode: decimal('net socket', words[9], offset),
        references: words[10] === undefined ? 0 : decimal('net socket', words[10], offset),
        pointer: words[11] ?? '',
      }
    })
}
