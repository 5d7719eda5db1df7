import { expect, test } from 'bun:test'
import { silent } from '../../../src/cosi/log.ts'
import { Runtime } from '../../../src/cosi/runtime.ts'
import { Store } from '../../../src/cosi/store.ts'
import { applyKernelParams } from '../../../src/os/runtime/controllers/kernel-param.ts'
import { KernelParamSpec, KernelParamStatus } from '../../../src/os/runtime/resources/kernel-param.ts'

test('a parameter that cannot be read before it is set is set, and holds up no other', async () => {
  const values = new Map<string, string | undefined>([
    ['/a/plain', '1'],
    ['/z/secret', undefined],
  ])
  const files = {
    readTextIfThere(path: string) {
      if (!values.has(path)) return undefined
      const value = values.get(path)
      if (value === undefined) throw Object.assign(new Error(`read ${path}: EIO`), { code: 'EIO' })
      return `${value}\n`
    },
    writeInto: (path: string, value: string) => void values.set(path, value),
  }
  const store = new Store()
  const runtime = new Runtime(store, { log: silent })
  const sysctl = { sysctlPath: (name: string) => `/${name.replaceAll('.', '/')}` }
  runtime.register(applyKernelParams({ mode: 'metal', sysctl, files } as never))
  runtime.start()
  const desire = (name: string, value: string) => store.put(KernelParamSpec, `proc.sys.${name}`, { value, ignoreErrors: false })
  desire('z.secret', 'fd00::5')
  desire('a.plain', '2')
  desire('no.such', '3')
  await runtime.settled()
  expect(values).toEqual(
    new Map([
      ['/a/plain', '2'],
      ['/z/secret', 'fd00::5'],
    ]),
  )
  const status = (name: string) => store.get(KernelParamStatus, `proc.sys.${name}`)?.spec
  expect(status('z.secret')).toEqual({ current: 'fd00::5', default: '', unsupported: false })
  expect(status('no.such')?.unsupported).toBe(true)
  for (const name of ['z.secret', 'a.plain']) store.teardown(KernelParamSpec, `proc.sys.${name}`)
  await runtime.settled()
  expect(values.get('/a/plain')).toBe('1')
  expect(values.get('/z/secret')).toBe('fd00::5')
  await runtime.stop()
})
