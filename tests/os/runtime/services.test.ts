import { expect, test } from 'bun:test'
import { silent } from '../../../src/cosi/log.ts'
import { Runtime } from '../../../src/cosi/runtime.ts'
import { Store } from '../../../src/cosi/store.ts'
import { MachineConfig } from '../../../src/os/config/resources/machine-config.ts'
import { programEnvironment } from '../../../src/os/cri/service-environment.ts'
import { networkConditions, timeConditions } from '../../../src/os/network/conditions.ts'
import { NetworkStatus } from '../../../src/os/network/resources/network-status.ts'
import { serviceMethods } from '../../../src/os/runtime/api/services.ts'
import { configEnvironment } from '../../../src/os/runtime/controllers/environment.ts'
import { observeServices } from '../../../src/os/runtime/controllers/service.ts'
import { Events } from '../../../src/os/runtime/events.ts'
import { Service } from '../../../src/os/runtime/resources/service.ts'
import { task } from '../../../src/supervise/runner/task.ts'
import { Supervisor } from '../../../src/supervise/supervisor.ts'
import { apiStatus } from '../../../src/wire/api-status.ts'

function machine() {
  const store = new Store()
  const runtime = new Runtime(store, { log: silent })
  const supervisor = new Supervisor({ store })
  const events = new Events()
  const runner = task('registryd', ({ signal }) => new Promise((resolve) => signal.addEventListener('abort', () => resolve())))
  supervisor.load({
    id: 'registryd',
    dependsOn: [],
    restart: 'always',
    runner,
    health: { check: async () => {} },
    operator: ['restart', 'stop'],
  })
  return { store, runtime, supervisor, events }
}

test('a service that runs is a resource with its health, one that has stopped is none; each change is an event', async () => {
  const { store, runtime, supervisor, events } = machine()
  runtime.register(observeServices({ supervisor, events }))
  runtime.start()
  supervisor.start('registryd')
  await supervisor.until('registryd', 'up')
  await runtime.settled()
  expect(store.get(Service, 'registryd')?.spec).toEqual({ running: true, healthy: true, unknown: false })
  await supervisor.stop('registryd')
  await runtime.settled()
  expect(store.get(Service, 'registryd')).toBeUndefined()
  const last = events.last('machine.ServiceStateEvent', ({ message }) => message === 'Health check successful')
  expect(last?.payload).toMatchObject({ service: 'registryd', action: 3, health: { healthy: true, unknown: false } })
})

test('the API lists services with events oldest first, and does only what a service allows', async () => {
  const { supervisor } = machine()
  const methods = serviceMethods({ supervisor })
  const call = async (name: string, request: object): Promise<any> =>
    methods.find(({ path }) => path.endsWith(`/${name}`))!.handle(request as never, {} as never)
  supervisor.start('registryd')
  await supervisor.until('registryd', 'up')
  const [{ services }] = (await call('ServiceList', {})).messages
  expect(services[0]).toMatchObject({ id: 'registryd', state: 'Running', health: { healthy: true } })
  expect(services[0].events.events[0]).toMatchObject({ msg: 'Starting service', state: 'Starting' })
  expect(await call('ServiceStop', { id: 'registryd' })).toEqual({ messages: [{ resp: 'Service "registryd" stopped' }] })
  await expect(call('ServiceStart', { id: 'registryd' })).rejects.toMatchObject({ [apiStatus]: 'FailedPrecondition' })
  await expect(call('ServiceRestart', { id: 'nope' })).rejects.toMatchObject({ [apiStatus]: 'NotFound' })
})

test('the operator’s variables reach programs: documents over the old way over the kernel command line', async () => {
  const { store, runtime } = machine()
  runtime.register(configEnvironment('quiet talos.environment=HTTP_PROXY=http://10.0.0.9:3128 talos.environment=GODEBUG=x=1'))
  store.put(
    MachineConfig,
    'v1alpha1',
    'machine: { env: { A: old, HTTP_PROXY: "http://p:1/?a=b" } }\n---\napiVersion: v1alpha1\nkind: EnvironmentConfig\nvariables: { A: new }\n',
  )
  runtime.start()
  await runtime.settled()
  expect(programEnvironment(store)).toMatchObject({ A: 'new', HTTP_PROXY: 'http://p:1/?a=b', GODEBUG: 'x=1' })
  expect(programEnvironment(store).PATH).toContain('/usr/bin')
})

test('conditions name what is missing', () => {
  const { store } = machine()
  expect([...timeConditions(store), ...networkConditions(store, ['address'])]).toEqual(['time sync', 'network'])
  store.put(NetworkStatus, 'status', { addressReady: true, connectivityReady: false, hostnameReady: false, etcFilesReady: false })
  expect(networkConditions(store, ['address'])).toEqual([])
  expect(networkConditions(store, ['address', 'hostname'])).toEqual(['network'])
})
