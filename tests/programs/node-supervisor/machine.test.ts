import { expect, test } from 'bun:test'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { planDisk } from '../../../src/os/block/layout.ts'
import { answer } from '../../../src/programs/node-supervisor/gateway/serve-addresses.ts'
import { configUrl, requestingNode } from '../../../src/programs/node-supervisor/gateway/serve-configs.ts'
import type { ClusterRecord } from '../../../src/programs/node-supervisor/layout.ts'
import { shutdownOf } from '../../../src/programs/node-supervisor/machine/qmp.ts'
import { isInstalled, machineStopReason } from '../../../src/programs/node-supervisor/machine/run-machine.ts'
import { macOf } from '../../../src/programs/node-supervisor/node-address.ts'
import { dhcp4Type, newRequest } from '../../../src/wire/dhcp/dhcp4.ts'
import { Dhcp4Options, dhcp4Option, optionAddresses, optionNumber } from '../../../src/wire/dhcp/dhcp4-options.ts'
import { writeTable } from '../../../src/wire/gpt/table.ts'

const uuid = '0c5f3b8e-7a52-4a0f-9a5e-2f1f6f1d7c11'
const cluster: ClusterRecord = {
  version: 1,
  name: 'demo',
  id: '01234567',
  network: { cidr: '10.5.0.0/24', gateway: '10.5.0.1', mtu: 1450, bridge: 'ichor01234567', nameservers: ['10.5.0.1'], forwardDns: [] },
  kubernetes: { version: '1.36.3', port: 6443, hostPort: 40001 },
  machineApi: { hostPort: 40002 },
  hostAddress: '127.0.0.1',
  image: '/image',
  machines: { images: '/dist', start: 'pxe', firmware: 'uefi', secureBoot: false, accelerator: 'tcg', configPort: 3001 },
  nodes: [{ name: 'demo-controlplane-1', role: 'controlplane', ip: '10.5.0.2', link: 'ich1', cpus: 2000, memory: 1, ports: [], uuid }],
}

const ask = (type: number, from = macOf('10.5.0.2'), more: [number, Uint8Array][] = []) =>
  answer(cluster, newRequest(7, from, [[dhcp4Option.messageType, optionNumber(type, 1)], ...more]))

test('a machine is offered the address that it is known by, with the network around it', () => {
  const offer = ask(dhcp4Type.discover)
  const options = new Dhcp4Options(offer?.options ?? new Map())
  expect(offer?.yourAddress).toBe('10.5.0.2')
  expect([options.type, options.prefixLength, options.mtu]).toEqual([dhcp4Type.offer, 24, 1450])
  expect([options.routers, options.nameServers, options.server]).toEqual([['10.5.0.1'], ['10.5.0.1'], '10.5.0.1'])
})

test('a stranger on the bridge is not answered', () => {
  expect(ask(dhcp4Type.discover, '02:00:00:00:00:09')).toBeUndefined()
})

test('a request for another server is left to it, one for another address is refused', () => {
  expect(ask(dhcp4Type.request, undefined, [[dhcp4Option.server, optionAddresses('10.5.0.9')]])).toBeUndefined()
  const refusal = ask(dhcp4Type.request, undefined, [[dhcp4Option.requestedAddress, optionAddresses('10.5.0.77')]])
  expect(new Dhcp4Options(refusal?.options ?? new Map()).type).toBe(dhcp4Type.nak)
  const taken = ask(dhcp4Type.request, undefined, [[dhcp4Option.requestedAddress, optionAddresses('10.5.0.2')]])
  expect(new Dhcp4Options(taken?.options ?? new Map()).type).toBe(dhcp4Type.ack)
})

test('a configuration is handed to its own machine alone', () => {
  const [node] = cluster.nodes
  const url = configUrl(cluster, cluster.machines!, node!)
  expect(url).toBe(`http://10.5.0.1:3001/configuration/${uuid}`)
  expect(requestingNode(cluster, `/configuration/${uuid}`, '10.5.0.2')).toBe(node!)
  expect(requestingNode(cluster, `/configuration/${uuid}`, '10.5.0.3')).toBeUndefined()
  expect(requestingNode(cluster, '/configuration/undefined', '10.5.0.2')).toBeUndefined()
})

test('a machine that restarted is started again, one that was switched off is not', () => {
  expect(machineStopReason(0, null, { guest: true, reason: 'guest-reset' })).toEqual({ again: true, text: 'rebooted' })
  expect(machineStopReason(0, null, { guest: true, reason: 'guest-shutdown' })).toEqual({ again: false, text: 'powered off' })
  expect(machineStopReason(0, null, { guest: true, reason: 'guest-panic' }).again).toBe(true)
  expect(machineStopReason(1, null, undefined)).toEqual({ again: true, text: 'the emulator exited with code 1' })
  expect(machineStopReason(null, 'SIGKILL', undefined).again).toBe(true)
})

test('only a SHUTDOWN event is taken for the end of a machine', () => {
  expect(shutdownOf('{"timestamp": {}, "event": "SHUTDOWN", "data": {"guest": true, "reason": "guest-reset"}}')).toEqual({
    guest: true,
    reason: 'guest-reset',
  })
  for (const line of ['{"event": "RESET"}', '{"event": "SHUTDOWN"', '{"event": "SHUTDOWN"}', '{"return": {}}'])
    expect(shutdownOf(line)).toBeUndefined()
})

test('a machine started over the network goes on from its disk once the installation is complete', () => {
  const folder = mkdtempSync(join(tmpdir(), 'ichor-machine-'))
  try {
    const file = join(folder, 'disk.raw')
    const image = new Uint8Array(16 << 20)
    const holds = (label?: string) => {
      if (label) {
        const plan = { partitions: [{ label, type: 'linux', size: 1 << 20 } as const] }
        const { table } = planDisk({ path: file, size: image.length, sectorSize: 512 }, plan)
        for (const { offset, bytes } of writeTable(table, { protective: true }).flat()) image.set(bytes, offset)
      }
      writeFileSync(file, image)
      return isInstalled(file)
    }
    expect(holds()).toBe(false)
    expect(holds('INSTALLING')).toBe(false)
    expect(holds('META')).toBe(true)
    image.fill(0, 512, 1024) // the first header is torn: the backup counts
    expect(holds()).toBe(true)
  } finally {
    rmSync(folder, { recursive: true })
  }
})
