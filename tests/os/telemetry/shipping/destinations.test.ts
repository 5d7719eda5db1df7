/** Where logs and events go: the configuration and the kernel command line. */
import { expect, test } from 'bun:test'
import { silent } from '../../../../src/cosi/log.ts'
import { Runtime } from '../../../../src/cosi/runtime.ts'
import { Store } from '../../../../src/cosi/store.ts'
import { MachineConfig } from '../../../../src/os/config/resources/machine-config.ts'
import { configEventSink } from '../../../../src/os/telemetry/controllers/event-sink-config.ts'
import { configKmsgLog } from '../../../../src/os/telemetry/controllers/kmsg-log-config.ts'
import { configLogDestinations } from '../../../../src/os/telemetry/controllers/log-destination.ts'
import { EventSinkConfig } from '../../../../src/os/telemetry/resources/event-sink-config.ts'
import { KmsgLogConfig } from '../../../../src/os/telemetry/resources/kmsg-log-config.ts'
import { LogDestination } from '../../../../src/os/telemetry/resources/log-destination.ts'
import { endpointOf } from '../../../../src/os/telemetry/shipping/endpoint.ts'
import { joinUrl } from '../../../../src/os/url.ts'

async function configured(config: string, commandLine = '') {
  const store = new Store()
  const runtime = new Runtime(store, { log: silent })
  runtime.register(configLogDestinations, configKmsgLog(commandLine), configEventSink(commandLine))
  runtime.start()
  if (config) store.put(MachineConfig, 'v1alpha1', config)
  await runtime.settled()
  runtime.stop()
  return {
    logs: store.list(LogDestination).map(({ metadata, spec }) => [metadata.id, spec.extraTags]),
    kernel: store.get(KmsgLogConfig, 'kmsg-log')?.spec.destinations?.map(joinUrl),
    events: store.get(EventSinkConfig, 'event-sink')?.spec.endpoint,
  }
}

const commandLine = 'talos.logging.kernel=tcp://10.0.0.1:1 talos.events.sink=10.0.0.1:2'

test('nothing is sent anywhere unless it is configured', async () => {
  expect(await configured('apiVersion: v1alpha1\nkind: HostnameConfig\nhostname: a\n')).toEqual({
    logs: [],
    kernel: undefined,
    events: undefined,
  })
})

test('the kernel command line names destinations before there is a configuration', async () => {
  expect(await configured('', commandLine)).toEqual({ logs: [], kernel: ['tcp://10.0.0.1:1'], events: '10.0.0.1:2' })
})

test('destinations of the kernel log are added, each once; the event sink of the document takes precedence', async () => {
  const kmsg = (name: string, url: string) => `apiVersion: v1alpha1\nkind: KmsgLogConfig\nname: ${name}\nurl: ${url}\n`
  const documents = [
    kmsg('a', 'tcp://10.0.0.1:1'),
    kmsg('b', 'udp://[fd00::1]:514'),
    'apiVersion: v1alpha1\nkind: EventSinkConfig\nendpoint: b:3\n',
  ]
  expect(await configured(documents.join('---\n'), commandLine)).toEqual({
    logs: [],
    kernel: ['tcp://10.0.0.1:1', 'udp://[fd00::1]:514'],
    events: 'b:3',
  })
})

test('an endpoint has a protocol, a host and a port', () => {
  expect(endpointOf('udp://[fd00::1]:514/')).toEqual({ protocol: 'udp', host: 'fd00::1', port: 514, url: 'udp://[fd00::1]:514' })
  expect(endpointOf('tls://logs.example.org:6514')).toMatchObject({ protocol: 'tls', host: 'logs.example.org', port: 6514 })
  for (const wrong of ['http://a:1', 'tcp://a', 'a:1', '']) expect(() => endpointOf(wrong)).toThrow('is no destination of logs')
})
