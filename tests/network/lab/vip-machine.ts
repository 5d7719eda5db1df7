/**
 * A control plane node as far as a shared address needs one, in the network namespace it is started in:
 * `vip-machine.ts <folder of certificates> <address>`. On a termination signal it goes as a machine does that is rebooted.
 */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { createLogger } from '../../../src/cosi/log.ts'
import { Runtime } from '../../../src/cosi/runtime.ts'
import { Store } from '../../../src/cosi/store.ts'
import * as files from '../../../src/linux/fs/files.ts'
import * as packet from '../../../src/linux/net/packet.ts'
import * as net from '../../../src/linux/net/rtnetlink.ts'
import { MachineConfig } from '../../../src/os/config/resources/machine-config.ts'
import { etcdClient } from '../../../src/os/etcd/client.ts'
import type { Kernel } from '../../../src/os/kernel.ts'
import { applyAddresses, mergeAddresses } from '../../../src/os/network/controllers/address/address.ts'
import { configVips } from '../../../src/os/network/controllers/address/vip.ts'
import { observeAddresses, observeLinks } from '../../../src/os/network/controllers/observe.ts'
import { applyOperators, mergeOperators } from '../../../src/os/network/controllers/operator.ts'
import { vipOperator } from '../../../src/os/network/operators/vip.ts'
import { MachineStatus } from '../../../src/os/runtime/resources/machine-status.ts'

const [folder = '', address = ''] = process.argv.slice(2)
const [ca, cert, key] = ['ca.crt', 'client.crt', 'client.key'].map((name) => readFileSync(join(folder, name), 'utf8')) as [
  string,
  string,
  string,
]
const kernel = { mode: 'container', files, net, packet } as unknown as Kernel
const store = new Store()
const log = createLogger(({ level, message, fields }) => process.env.SHOW && console.error(level, message, JSON.stringify(fields)))
const runtime = new Runtime(store, { log })
/** What is held or waited for now. */
let election: Promise<void> | undefined
runtime.register(
  observeLinks(kernel),
  observeAddresses(kernel),
  configVips(),
  mergeOperators,
  applyOperators({
    vip: vipOperator(
      packet,
      (name, act, signal) => {
        const etcd = etcdClient(['127.0.0.1:2379'], { ca, cert, key })
        election = etcd.withMutex(name, act, signal).finally(() => etcd.close())
        return election
      },
      () => undefined, // no cloud moves the address
    ),
  }),
  mergeAddresses,
  applyAddresses(kernel),
)
const config = `version: v1alpha1\nmachine:\n  type: controlplane\ncluster: {}\n---\napiVersion: v1alpha1\nkind: Layer2VIPConfig\nname: ${address}\nlink: eth0\n`
store.put(MachineConfig, 'v1alpha1', config)
runtime.start()
const alive = setInterval(() => {}, 60_000)
process.on('SIGTERM', async () => {
  store.put(MachineStatus, 'machine', { stage: 'rebooting', status: { ready: false, unmetConditions: [] } })
  using network = net.openNetwork()
  while (network.addresses().some((one) => one.address === `${address}/32`)) await Bun.sleep(5)
  clearInterval(alive)
  await election?.catch(() => {}) // whether it was given back or was never had
  process.exit(0)
})
console.log('ready')
