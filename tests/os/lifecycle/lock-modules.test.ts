import { expect, test } from 'bun:test'
import { silent } from '../../../src/cosi/log.ts'
import { Runtime } from '../../../src/cosi/runtime.ts'
import { Store } from '../../../src/cosi/store.ts'
import { lockModules } from '../../../src/os/lifecycle/start/lock-modules.ts'
import { applyKernelModules } from '../../../src/os/runtime/controllers/kernel-module.ts'
import { KernelModuleSpec } from '../../../src/os/runtime/resources/kernel-module.ts'

/** A kernel that has been told of modules by name, with a list of those to have. */
function machine(hotPlug: string) {
  const told: string[] = []
  const sysctls = new Map([['kernel.modules_disabled', '0']])
  const texts: Record<string, string> = {
    '/usr/lib/modules/6.1/modules.dep': 'kernel/usb.ko:\nkernel/uas.ko: kernel/usb.ko\nkernel/nbd.ko:\n',
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
        told.push([path.split('/').at(-1), ...parameters].join(' '))
        return true
      },
    },
    sysctl: {
      getSysctl: (name: string) => sysctls.get(name)!,
      setSysctl: (name: string, value: string) => void sysctls.set(name, value),
    },
  }
  return { kernel: kernel as never, told, sysctls, store: new Store() }
}

const context = { log: silent, signal: new AbortController().signal }

test('what may be plugged in and what the configuration names is loaded, then the kernel takes no more', async () => {
  const { kernel, told, sysctls, store } = machine('uas quirks=none\next4\n# a comment\n\nno-such\n')
  store.put(KernelModuleSpec, 'nbd', { string: 'nbd', parameters: ['max_part=8'] })
  await lockModules({ kernel, store }).run(context)
  expect(told).toEqual(['usb.ko', 'uas.ko quirks=none', 'nbd.ko max_part=8'])
  expect(sysctls.get('kernel.modules_disabled')).toBe('1')
})

test('a module that is wished for afterwards waits for the next start, and says so', async () => {
  const { kernel, store } = machine('uas\n')
  await lockModules({ kernel, store }).run(context)
  const said: unknown[] = []
  const log = { ...silent, warn: (_: string, fields?: Record<string, unknown>) => said.push(fields?.error) }
  const runtime = new Runtime(store, { log: { ...log, with: () => log } as never })
  runtime.register(applyKernelModules(kernel))
  store.put(KernelModuleSpec, 'uas', { string: 'uas', parameters: [] })
  runtime.start()
  await runtime.settled()
  expect(said).toEqual([])
  store.put(KernelModuleSpec, 'nbd', { string: 'nbd', parameters: [] })
  for (let turn = 0; turn < 100 && said.length === 0; turn++) await new Promise(setImmediate)
  expect(said[0]).toBe('load kernel module "nbd": the machine is up and takes no more modules, it is loaded at the next reboot')
  runtime.stop()
})
