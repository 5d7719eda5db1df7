import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { DecodeError } from '../../../src/wire/decode-error.ts'
import { parseDiskstats } from '../../../src/wire/proc/disks.ts'
import { parseKernelRecord } from '../../../src/wire/proc/kmsg.ts'
import { parseLoadavg } from '../../../src/wire/proc/load.ts'
import { parseMeminfo } from '../../../src/wire/proc/memory.ts'
import { parseModules } from '../../../src/wire/proc/modules.ts'
import { parseMountinfo } from '../../../src/wire/proc/mountinfo.ts'
import { parseNetworkDevices } from '../../../src/wire/proc/network-devices.ts'
import { parsePressure } from '../../../src/wire/proc/pressure.ts'
import { parseCommandLine, parseProcessStat, parseProcessStatus } from '../../../src/wire/proc/process.ts'
import { parseCpuinfo } from '../../../src/wire/proc/processors.ts'
import { parseSockets } from '../../../src/wire/proc/sockets.ts'
import { parseSystemStat } from '../../../src/wire/proc/system.ts'

const samples: Record<string, { parse: (text: string) => unknown; text: string }> = {
  meminfo: {
    parse: parseMeminfo,
    text: 'MemTotal:       24684092 kB\nActive(anon):       1580 kB\nHugePages_Total:       0\nDirectMap4k:       34816 kB\n',
  },
  loadavg: { parse: parseLoadavg, text: '0.38 1.86 1.77 1/102 32190\n' },
  pressure: {
    parse: parsePressure,
    text: 'some avg10=1.50 avg60=0.12 avg300=0.41 total=2104311\nfull avg10=0.00 avg60=0.10 avg300=0.36 total=1862017\n',
  },
  stat: {
    parse: parseSystemStat,
    text: 'cpu  200 0 100 1000 5 0 1 2 0 0\ncpu0 100 0 50 500 5 0 1 1 0 0\ncpu1 100 0 50 500 0 0 0 1 0 0\nintr 30 10 0 20\nctxt 77\nbtime 1795289169\nprocesses 12\nprocs_running 2\nprocs_blocked 1\nsoftirq 55 1 2 3 4 5 6 7 8 9 10\n',
  },
  cpuinfo: {
    parse: parseCpuinfo,
    text: 'processor\t: 0\nvendor_id\t: AuthenticAMD\ncpu MHz\t\t: 2596.122\nflags\t\t: fpu vme\npower management:\n\nprocessor\t: 1\nBogoMIPS\t: 48.00\nFeatures\t: fp asimd\nCPU implementer\t: 0x41\n',
  },
  modules: {
    parse: parseModules,
    text: 'nf_tables 372736 221 nft_ct,nft_chain_nat, Live 0x0000000000000000\nloop 40960 - - Loading 0xffffffffc0a00000 (E)\n',
  },
  diskstats: {
    parse: parseDiskstats,
    text: ' 254       0 vda 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17\n   7       0 loop0 1 2 3 4 5 6 7 8 9 10 11\n',
  },
  'net/dev': {
    parse: parseNetworkDevices,
    text: 'Inter-|   Receive  |  Transmit\n face |bytes packets|bytes packets\n  eth0: 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16\n',
  },
  'process stat': {
    parse: parseProcessStat,
    text: '42 (a) b) R 1 42 42 0 -1 4194304 1 0 0 0 150 50 0 0 20 0 7 0 173467 6714400768 9401 18446744073709551615 1 1 0\n',
  },
  'process status': { parse: parseProcessStatus, text: 'Name:\tcat\nUid:\t0\t1\t2\t3\nGroups:\t \n' },
  cmdline: { parse: parseCommandLine, text: 'bun\0a b\0\0x\0' },
  tcp: {
    parse: parseSockets,
    text: '  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n   0: 0100007F:07E8 0000000A:0050 0A 00000001:00000002 02:00000AF0 00000003     0        0 1526 1 000000004b1eaf12 100 0 0 10 0\n',
  },
  tcp6: {
    parse: parseSockets,
    text: '  sl  local_address\n   0: B80D0120000000000000000001000000:C350 00000000000000000000000000000000:0000 0A 00000000:00000000 00:00000000 00000000    50        0 99 1 0000000000000000\n',
  },
  mountinfo: {
    parse: parseMountinfo,
    text: '63 43 0:39 / /tmp/a\\040b rw,nosuid shared:3 master:1 - tmpfs tmp\\011fs rw,size=1024k\n27 1 254:0 / / rw - ext4 /dev/vda rw\n',
  },
  kmsg: { parse: parseKernelRecord, text: '30,395,1798842134,-;hello \\x0a there\n SUBSYSTEM=block\n DEVICE=b7:0\n' },
}

const parsed = (name: keyof typeof samples) => samples[name]?.parse(samples[name]?.text ?? '')

describe('files of /proc', () => {
  test('pressure is percent of time, and microseconds', () => {
    expect(parsed('pressure')).toEqual({
      some: { avg10: 1.5, avg60: 0.12, avg300: 0.41, total: 2104311 },
      full: { avg10: 0, avg60: 0.1, avg300: 0.36, total: 1862017 },
    })
  })

  test('give their values', () => {
    expect(parsed('meminfo')).toEqual({ memtotal: 24684092, activeanon: 1580, hugepagestotal: 0, directmap4k: 34816 })
    expect(parsed('loadavg')).toEqual({ load1: 0.38, load5: 1.86, load15: 1.77, running: 1, processes: 102 })
    expect(parsed('stat')).toMatchObject({
      bootTime: 1795289169,
      cpuTotal: { user: 2, system: 1, idle: 10, steal: 0.02 },
      cpu: [{ user: 1 }, { user: 1 }],
      irqTotal: 30,
      irq: [10, 0, 20],
      contextSwitches: 77,
      processCreated: 12,
      processRunning: 2,
      processBlocked: 1,
      softIrqTotal: 55,
      softIrq: { hi: 1, rcu: 10 },
    })
    expect(parsed('cpuinfo')).toMatchObject([
      { processor: 0, vendorId: 'AuthenticAMD', cpuMhz: 2596.122, flags: ['fpu', 'vme'] },
      { processor: 1, vendorId: '0x41', bogoMips: 48, flags: ['fp', 'asimd'] },
    ])
    expect(parsed('diskstats')).toMatchObject([
      { name: 'vda', readCompleted: 1, ioTimeWeightedMs: 11, discardTimeMs: 15 },
      { name: 'loop0', discardCompleted: 0 },
    ])
    expect(parsed('modules')).toMatchObject([
      { name: 'nf_tables', size: 372736, referenceCount: 221, dependencies: ['nft_ct', 'nft_chain_nat'], state: 'Live' },
      { name: 'loop', referenceCount: 0, dependencies: [], state: 'Loading', address: '0xffffffffc0a00000' },
    ])
    expect(parsed('net/dev')).toMatchObject([{ name: 'eth0', rxBytes: 1, rxMulticast: 8, txBytes: 9, txCompressed: 16 }])
    expect(parsed('tcp')).toMatchObject([
      {
        localIp: '127.0.0.1',
        localPort: 2024,
        remoteIp: '10.0.0.0',
        remotePort: 80,
        state: 10,
        txQueue: 1,
        rxQueue: 2,
        timer: 2,
        retransmits: 3,
        inode: 1526,
      },
    ])
    expect(parsed('tcp6')).toMatchObject([{ localIp: '2001:db8::1', localPort: 50000, remoteIp: '::', uid: 50 }])
  })

  test('identify processes by any name', () => {
    expect(parsed('process stat')).toMatchObject({
      pid: 42,
      command: 'a) b',
      state: 'R',
      ppid: 1,
      cpuTime: 2,
      threads: 7,
      startTime: 173467,
      residentPages: 9401,
    })
    expect(parsed('process status')).toEqual(
      new Map([
        ['Name', 'cat'],
        ['Uid', '0 1 2 3'],
        ['Groups', ''],
      ]),
    )
    expect(parsed('cmdline')).toEqual(['bun', 'a b', '', 'x'])
    expect(parseCommandLine('')).toEqual([])
  })

  test('unescape blanks in mounts and control characters in the kernel log', () => {
    expect(parsed('mountinfo')).toEqual([
      {
        id: 63,
        parent: 43,
        device: '0:39',
        root: '/',
        target: '/tmp/a b',
        options: ['rw', 'nosuid'],
        propagation: ['shared:3', 'master:1'],
        type: 'tmpfs',
        source: 'tmp\tfs',
        superOptions: ['rw', 'size=1024k'],
      },
      {
        id: 27,
        parent: 1,
        device: '254:0',
        root: '/',
        target: '/',
        options: ['rw'],
        propagation: [],
        type: 'ext4',
        source: '/dev/vda',
        superOptions: ['rw'],
      },
    ])
    expect(parsed('kmsg')).toEqual({
      facility: 3,
      severity: 6,
      sequence: 395,
      timestamp: 1798842134,
      message: 'hello \n there',
      tags: { SUBSYSTEM: 'block', DEVICE: 'b7:0' },
    })
  })

  test.each(Object.keys(samples))('%s, truncated or modified, parses or fails with a DecodeError', (name) => {
    const { parse, text } = samples[name] ?? { parse: String, text: '' }
    const attempt = (input: string) => {
      try {
        parse(input)
      } catch (error) {
        expect(error).toBeInstanceOf(DecodeError)
      }
    }
    for (let length = 0; length < text.length; length++) attempt(text.slice(0, length))
    fc.assert(
      fc.property(fc.nat(text.length), fc.string(), (at, noise) => attempt(text.slice(0, at) + noise + text.slice(at + noise.length))),
    )
    fc.assert(fc.property(fc.string(), attempt))
  })

  test('are bounded', () => {
    expect(() => parseMeminfo('A: 1\n'.repeat(2000))).toThrow(DecodeError)
    expect(() => parseMountinfo('x'.repeat(17 << 20))).toThrow('decode mountinfo at 16777216: text too long')
  })
})
