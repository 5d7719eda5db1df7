import { expect, test } from 'bun:test'
import { silent } from '../../../src/cosi/log.ts'
import { Runtime } from '../../../src/cosi/runtime.ts'
import { Store } from '../../../src/cosi/store.ts'
import { SystemError } from '../../../src/linux/system-error.ts'
import { lockModules } from '../../../src/os/lifecycle/start/lock-modules.ts'
import { applyKernelModules } from '../../../src/os/runtime/controllers/kernel-module.ts'
import { KernelModuleSpec } from '../../../src/os/runtime/resources/kernel-module.ts'

/** A kernel that records loaded modules, with a list of hot-plug modules. */
function machine(hotPlug: string) {
  const recorded: string[] = []
  const sysctls = new Map([['kernel.modules_disabled', '0']])
  const texts: Record<string, string> = {
    '/usr/lib/modules/6.1/modules.dep': 'kernel/usb.ko:\nkernel/uas.ko: kernel/usb.ko\nkernel/nbd.ko:\nkernel/kvm-other.ko:\n',
    '/usr/lib/modules/6.1/modules.builtin': 'kernel/ext4.ko\n',
    '/usr/share/ichor/hot-plug-modules': hotPlug,
    '/proc/modules': 'uas 28672 0 - Live 0x0000000000000000\nusb 4096 1 uas, Live 0x0000000000000000\n',
  }
  const kernel = {
    files: {
      readText: (path: string) => texts[path]!,
      readTextIfThere: (path: string) => texts[path],
    },
    uts: { uname: () => ({ release: '6.1' }) },
    modules: {
      loadModule(path: string, parameters: readonly string[] = []) {
        if (sysctls.get('kernel.modules_disabled') === '1') throw new Error('finit_module: EPERM')
        if (path.endsWith('/kvm-other.ko')) throw new SystemError('finit_module', 95)
        recorded.push([path.split('/').at(-1), ...parameters].join(' '))
        return true
      },
    },
    sysctl: {
      getSysctl: (name: string) => sysctls.get(name)!,
      setSysctl: (name: string, value: string) => void sysctls.set(name, value),
    },
  }
  return { kernel: kernel as never, recorded, sysctls, store: new Store() }
}

const context = { log: silent, signal: new AbortController().signal }

test('hot-plug modules and configured modules are loaded, then loading is locked', async () => {
  const { kernel, recorded, sysctls, store } = machine('uas quirks=none\next4\n# a comment\n\nno-such\n')
  store.put(KernelModuleSpec, 'nbd', { string: 'nbd', parameters: ['max_part=8'] })
  await lockModules({ kernel, store }).run(context)
  expect(recorded).toEqual(['usb.ko', 'uas.ko quirks=none', 'nbd.ko max_part=8'])
  expect(sysctls.get('kernel.modules_disabled')).toBe('1')
})

test('a warning names modules that failed, but not those of the list whose hardware is absent', async () => {
  const warnings = async (hotPlug: string, configured: string[]) => {
    const { kernel, store } = machine(hotPlug)
    for (const name of configured) store.put(KernelModuleSpec, name, { string: name, parameters: [] })
    const logged: unknown[] = []
    const log = { ...silent, warn: (_: string, fields?: Record<string, unknown>) => logged.push(fields?.modules) }
    await lockModules({ kernel, store }).run({ ...context, log: log as never })
    return logged
  }
  expect(await warnings('uas\nkvm-other\n', [])).toEqual([])
  expect(await warnings('uas\nkvm-other\nno-such\n', [])).toEqual(['no-such'])
  expect(await warnings('uas\n', ['kvm-other'])).toEqual(['kvm-other'])
})

test('a module configured later waits for the next boot, and this is logged', async () => {
  const { kernel, store } = machine('uas\n')
  await lockModules({ kernel, store }).run(context)
  const logged: unknown[] = []
  const log = { ...silent, warn: (_: string, fields?: Record<string, unknown>) => logged.push(fields?.error) }
  const runtime = new Runtime(store, { log: { ...log, with: () => log } as never })
  runtime.register(applyKernelModules(kernel))
  store.put(KernelModuleSpec, 'uas', { string: 'uas', parameters: [] })
  runtime.start()
  await runtime.settled()
  expect(logged).toEqual([])
  store.put(KernelModuleSpec, 'nbd', { string: 'nbd', parameters: [] })
  for (let turn = 0; turn < 100 && logged.length === 0; turn++) await new Promise(setImmediate)
  expect(logged[0]).toBe('load kernel module "nbd": the machine is up and takes no more modules, it is loaded at the next reboot')
  runtime.stop()
})
