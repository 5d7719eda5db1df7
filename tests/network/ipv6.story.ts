/** IPv6 addresses that the kernel generates and checks on the link: from a secret instead of the hardware address, and when another station has them. */
import { afterEach, beforeEach, expect, test } from 'bun:test'
import * as files from '../../src/linux/fs/files.ts'
import { inNetns } from '../../src/linux/net/netns.ts'
import { sysctlPath } from '../../src/linux/system/sysctl.ts'
import { MachineConfig } from '../../src/os/config/resources/machine-config.ts'
import { AddressStatus } from '../../src/os/network/resources/address.ts'
import { applyKernelParams, configKernelParams } from '../../src/os/runtime/controllers/kernel-param.ts'
import { KernelParamStatus } from '../../src/os/runtime/resources/kernel-param.ts'
import { dnsmasq } from './lab/dnsmasq.ts'
import { Lab } from './lab/lab.ts'
import { surround } from './lab/matrix.ts'
import { eventually, workerConfig } from './lab/namespaces.ts'

if (!dnsmasq) console.log('skipped: needs dnsmasq: bun tests/network/prepare.ts installs it')

let lab: Lab
beforeEach(() => {
  lab = new Lab()
})
afterEach(() => lab.close())

const flagsOf = (address: string) => lab.machine.store.get(AddressStatus, `eth0/${address}`)?.spec.flags ?? ''

test.skipIf(!dnsmasq)('with a secret, addresses reveal nothing of the hardware address, and are the same after each absence', async () => {
  await surround(lab, 'plain')
  const within =
    <A extends unknown[], R>(act: (...args: A) => R) =>
    (...args: A): R =>
      inNetns(lab.nodePath, () => act(...args) as never) as R
  const { os, store } = lab.machine
  const kernel = { readTextIfThere: within(files.readTextIfThere), writeInto: within(files.writeInto) }
  os.register(configKernelParams, applyKernelParams({ mode: 'container', sysctl: { sysctlPath }, files: kernel } as never))
  const secret = 'net.ipv6.conf.default.stable_secret'
  const say = (...documents: string[]) => {
    const machine = `machine:\n  sysctls: {${secret}: "2001:db8:5ec1:e700:1:2:3:4"}\n`
    store.put(MachineConfig, 'v1alpha1', workerConfig(...documents).replace('machine:\n', machine))
  }
  say()
  await eventually(() => store.get(KernelParamStatus, `proc.sys.${secret}`)?.spec.unsupported === false, 'the secret is set')
  say('kind: LinkConfig\nname: eth0\n')
  const sure = () => lab.addresses('inet6').find((address) => !/tentative/.test(flagsOf(address)) && flagsOf(address) !== '')
  const address = await eventually(sure, 'an address of the advertised prefix')
  expect(flagsOf(address)).toContain('stableprivacy')
  expect(address).toStartWith('fd00:8:')
  expect(address).not.toContain('ff:fe00:5') // from the hardware address 02:00:00:00:00:05 it would be
  lab.node.setLink('eth0', { up: false })
  await eventually(() => lab.addresses('inet6').includes(address) && sure() === address, 'the same address')
})

test('an address that another station has is reported, is no address of the node, and is taken once it is free', async () => {
  const path = lab.spaces.make('other')
  lab.server.addVeth({ name: 'port1', master: lab.server.indexOf('br0'), up: true, peer: { name: 'eth0', up: true }, peerNetns: path })
  const other = lab.spaces.network(path)
  const link = other.indexOf('eth0')
  const address = 'fd00:8::5/64'
  const nodad = 2 // IFA_F_NODAD
  other.addAddress({ link, address, flags: nodad })
  lab.say(`kind: LinkConfig\nname: eth0\naddresses: [{address: "${address}"}, {address: 10.8.0.5/24}]\n`)
  await eventually(() => flagsOf(address).includes('dadfailed'), 'the other station is found')
  await eventually(() => lab.logged('duplicate address detected, will retry') === 1, 'a word about it')
  await eventually(() => lab.addresses().includes('10.8.0.5/24'), 'the other address')
  other.removeAddress({ link, address })
  await eventually(() => flagsOf(address) !== '' && !/tentative|dadfailed/.test(flagsOf(address)), 'it is taken')
  await eventually(() => lab.logged('duplicate address resolved') === 1, 'a word about that')
  expect(lab.logged('duplicate address detected, will retry')).toBe(1)
})
