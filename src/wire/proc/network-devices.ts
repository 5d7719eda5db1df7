import { DecodeError } from '../decode-error.ts'
import { decimal, fields, lines } from './lines.ts'

/** Counters of a network device. */
export interface NetworkDeviceStat {
  name: string
  rxBytes: number
  rxPackets: number
  rxErrors: number
  rxDropped: number
  rxFifo: number
  rxFrame: number
  rxCompressed: number
  rxMulticast: number
  txBytes: number
  txPackets: number
  txErrors: number
  txDropped: number
  txFifo: number
  txCollisions: number
  txCarrier: number
  txCompressed: number
}

/** Parses /proc/net/dev. */
export function parseNetworkDevices(text: string): NetworkDeviceStat[] {
  return lines('net/dev', text, 65536)
    .slice(2) // two lines of headings
    .map(({ text: line, offset }) => {
      const colon = line.lastIndexOf(':')
      const words = fields(line.slice(colon + 1))
      if (colon < 1 || words.length < 16) throw new DecodeError('net/dev', offset, 'too few fields')
      const at = (index: number) => decimal('net/dev', words[index], offset)
      return {
        name: line.slice(0, colon).trim(),
        rxBytes: at(0),
        rxPackets: at(1),
        rxErrors: at(2),
        rxDropped: at(3),
        rxFifo: at(4),
        rxFrame: at(5),
        rxCompressed: at(6),
        rxMulticast: at(7),
        txBytes: at(8),
        txPackets: at(9),
        txErrors: at(10),
        txDropped: at(11),
        txFifo: at(12),
        txCollisions: at(13),
        txCarrier: at(14),
        txCompressed: at(15),
      }
    })
}
