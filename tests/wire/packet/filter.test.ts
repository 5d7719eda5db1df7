import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { FilterError, type FilterInstruction, packetFilter } from '../../../src/wire/packet/filter.ts'

/** What the kernel does with the instructions we write (classic BPF), over one packet. */
function run(program: readonly FilterInstruction[], packet: Buffer): boolean {
  let a = 0
  let x = 0
  for (let pc = 0; pc < program.length; ) {
    const [op, jt, jf, k] = program[pc++]!
    const size = op === 0x20 ? 4 : op === 0x28 || op === 0x48 ? 2 : 1
    const at = op === 0x48 ? x + k : k
    if ([0x20, 0x28, 0x30, 0x48].includes(op)) {
      if (at + size > packet.length) return false
      a = packet.readUIntBE(at, size)
    } else if (op === 0xb1) {
      if (k >= packet.length) return false
      x = (packet[k]! & 15) * 4
    } else if (op === 0x54) a = (a & k) >>> 0
    else if (op === 0x15) pc += a === k ? jt : jf
    else if (op === 0x45) pc += (a & k) !== 0 ? jt : jf
    else if (op === 0x06) return k > 0
    else throw new Error(`op ${op}`)
  }
  throw new Error('ran off the end')
}

const mac = '020000000001020000000002'
const ip4 = (protocol: number, from: string, to: string, payload: string, fragment = 0) =>
  Buffer.concat([
    Buffer.from(`${mac}0800`, 'hex'),
    Buffer.from([0x45, 0, 0, 40, 0, 0, fragment >> 8, fragment & 255, 64, protocol, 0, 0]),
    Buffer.from(from.split('.').map(Number)),
    Buffer.from(to.split('.').map(Number)),
    Buffer.from(payload, 'hex'),
  ])
const ports = (from: number, to: number) => from.toString(16).padStart(4, '0') + to.toString(16).padStart(4, '0') + '00'.repeat(16)
const tcp4 = ip4(6, '10.5.0.1', '10.5.0.2', ports(40000, 6443))
const udp4 = ip4(17, '10.5.0.2', '10.5.0.3', ports(53, 4444))
const later = ip4(6, '10.5.0.1', '10.5.0.2', ports(40000, 6443), 100)
const icmp = ip4(1, '10.5.0.1', '10.5.0.2', '0800')
const arp = Buffer.from(`${mac}080600010800060400010200000000010a0500010000000000000a050002`, 'hex')
const tcp6 = Buffer.concat([
  Buffer.from(`${mac}86dd6000000000140640fd000000000000000000000000000001fd000000000000000000000000000002`, 'hex'),
  Buffer.from(ports(443, 50000), 'hex'),
])
const packets = { tcp4, udp4, later, icmp, arp, tcp6 }

describe('an expression passes what it describes', () => {
  test.each([
    ['ip', ['tcp4', 'udp4', 'later', 'icmp']],
    ['ip6', ['tcp6']],
    ['arp', ['arp']],
    ['tcp', ['tcp4', 'later', 'tcp6']],
    ['udp', ['udp4']],
    ['icmp', ['icmp']],
    ['not ip', ['arp', 'tcp6']],
    ['port 6443', ['tcp4']],
    ['src port 6443', []],
    ['dst port 6443', ['tcp4']],
    ['tcp port 443', ['tcp6']],
    ['udp port 53 or arp', ['udp4', 'arp']],
    ['host 10.5.0.1', ['tcp4', 'later', 'icmp', 'arp']],
    ['src host 10.5.0.2', ['udp4']],
    ['10.5.0.3', ['udp4']],
    ['host fd00::2', ['tcp6']],
    ['src host fd00::2', []],
    ['net 10.5.0.2/31', ['tcp4', 'udp4', 'later', 'icmp', 'arp']],
    ['dst net 10.5.0.3/32', ['udp4']],
    ['net fd00::/64', ['tcp6']],
    ['tcp and not port 6443', ['later', 'tcp6']],
    ['not tcp port 6443', ['udp4', 'later', 'icmp', 'arp', 'tcp6']],
    ['!(tcp || udp) && host 10.5.0.1', ['icmp', 'arp']],
  ])('%s', (text, passing) => {
    const program = packetFilter(text)
    const found = Object.entries(packets).filter(([, packet]) => run(program, packet))
    expect(found.map(([name]) => name)).toEqual(passing)
  })
})

test('the output of tcpdump is accepted', () => {
  const arpOnly = [
    [0x28, 0, 0, 12],
    [0x15, 0, 1, 0x806],
    [0x06, 0, 0, 262144],
    [0x06, 0, 0, 0],
  ]
  const printed = '{ 0x28, 0, 0, 0x0000000c },\n{ 0x15, 0, 1, 0x00000806 },\n{ 0x6, 0, 0, 0x00040000 },\n{ 0x6, 0, 0, 0x00000000 },\n'
  expect(packetFilter(printed)).toEqual(arpOnly as never)
  expect(packetFilter('4\n40 0 0 12\n21 0 1 2054\n6 0 0 262144\n6 0 0 0\n')).toEqual(arpOnly as never)
  expect(packetFilter('  ')).toEqual([])
})

test.each([
  ['tcp and', 'filter ends where an expression is wanted'],
  ['(tcp', 'filter: ")" is missing'],
  ['port http', 'filter: "http" is no port'],
  ['tcp udp', 'filter: "udp" is not understood here: want "and", "or" or the end'],
  ['vlan 5', 'filter: "vlan" is not understood: want ip, ip6'],
  ['{ 1, 2 }', 'filter instruction at 0: want'],
  ['4\n40 0 0 12', 'filter of 4 instructions has 4 numbers'],
  ['net 0.0.0.0/0', 'filter: a prefix of no bits matches everything'],
  [`${'('.repeat(100)}tcp${')'.repeat(100)}`, 'filter: more than 50 parentheses'],
])('%s is refused in one line', (text, message) => {
  expect(() => packetFilter(text)).toThrow(message)
})

test('any text compiles or throws a FilterError', () => {
  const words = fc.array(
    fc.constantFrom(
      'tcp',
      'ip6',
      'and',
      'or',
      'not',
      '(',
      ')',
      'host',
      '10.0.0.1',
      'fd00::1',
      'port',
      '80',
      'net',
      '10.0.0.0/8',
      'src',
      'dst',
    ),
  )
  fc.assert(
    fc.property(
      fc.oneof(
        fc.string(),
        words.map((all) => all.join(' ')),
      ),
      (text) => {
        try {
          const program = packetFilter(text)
          if (program.length > 0 && !/[{]|^\s*\d/.test(text)) for (const packet of Object.values(packets)) run(program, packet)
        } catch (error) {
          expect(error).toBeInstanceOf(FilterError)
        }
      },
    ),
  )
})
