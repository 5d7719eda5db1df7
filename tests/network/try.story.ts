import { afterEach, beforeEach, expect, test } from 'bun:test'
import { silent } from '../../src/cosi/log.ts'
import { ConfigApply } from '../../src/os/config/apply/config-apply.ts'
import { endTrial } from '../../src/os/config/controllers/trial.ts'
import { AcquireConfigStatus, acquireId } from '../../src/os/config/resources/acquire-config.ts'
import { MachineConfig } from '../../src/os/config/resources/machine-config.ts'
import { config } from '../os/config/machine.ts'
import { Lab } from './lab/lab.ts'
import { eventually } from './lab/namespaces.ts'

let lab: Lab
beforeEach(() => {
  lab = new Lab()
})
afterEach(() => lab.close())

/** Whether the machine answers from outside, if only to say that nobody listens. */
async function answers(): Promise<boolean> {
  const caller = Bun.spawn(['nsenter', `--net=${lab.around}`, 'timeout', '2', 'bash', '-c', 'exec 3<>/dev/tcp/10.8.0.5/9'], {
    stdin: 'ignore',
    stdout: 'ignore',
    stderr: 'pipe',
  })
  const output = await new Response(caller.stderr).text()
  await caller.exited
  return output.includes('refused')
}

test('a configuration that cuts the machine off is tried, and goes back by itself', async () => {
  const disk = new Map<string, string>()
  const files = {
    readTextIfThere: (path: string) => disk.get(path),
    writeAtomic: async (path: string, text: string) => void disk.set(path, text),
    remove: async (path: string) => void disk.delete(path),
  }
  const { store, os } = lab.machine
  const service = new ConfigApply({ store, runtime: os, log: silent, kernel: { mode: 'container', files } as never })
  store.put(AcquireConfigStatus, acquireId, {})
  os.register(endTrial(service))
  const link = (address: string) => `apiVersion: v1alpha1\nkind: LinkConfig\nname: eth0\naddresses: [{address: ${address}}]\n`
  await service.apply(`${config('worker')}---\n${link('10.8.0.5/24')}`, 'no-reboot')
  await eventually(answers, 'it answers', 120_000)
  const good = store.get(MachineConfig, 'v1alpha1')?.spec
  await service.apply(`${config('worker')}---\n${link('172.20.0.5/24')}`, 'try', { trialFor: 15_000 })
  await eventually(() => lab.addresses().includes('172.20.0.5/24') && lab.addresses().length === 1, 'it is cut off', 120_000)
  await eventually(() => lab.addresses().includes('10.8.0.5/24') && lab.addresses().length === 1, 'it is as before', 120_000)
  await eventually(answers, 'it answers again', 120_000)
  expect(store.get(MachineConfig, 'v1alpha1')?.spec).toBe(good)
}, 600_000)
