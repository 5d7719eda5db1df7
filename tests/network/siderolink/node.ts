/**
 * A machine with a management server, in the namespace that this program is started in: the real controllers of links, addresses
 * and SideroLink, WireGuard in user space, and apid's gateway as it serves in maintenance. A line of JSON per change of its status.
 * Arguments: the URL of the server, the machine's UUID, a folder for sockets, a file with the authorities that are trusted.
 */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { createLogger } from '../../../src/cosi/log.ts'
import { Runtime } from '../../../src/cosi/runtime.ts'
import { Store } from '../../../src/cosi/store.ts'
import { MachineConfig } from '../../../src/os/config/resources/machine-config.ts'
import { SystemInformation } from '../../../src/os/hardware/resources/system-information.ts'
import { applyAddresses, mergeAddresses } from '../../../src/os/network/controllers/address/address.ts'
import { configAddressOrder, observeNodeAddresses } from '../../../src/os/network/controllers/address/node-address.ts'
import { applyLinks, mergeLinks } from '../../../src/os/network/controllers/link/link.ts'
import { observeAddresses, observeLinks } from '../../../src/os/network/controllers/observe.ts'
import { NetworkStatus } from '../../../src/os/network/resources/network-status.ts'
import { Outbound } from '../../../src/os/outbound.ts'
import { configApiService, configMaintenance } from '../../../src/os/runtime/controllers/api-service.ts'
import { APIServiceConfig } from '../../../src/os/runtime/resources/api-service-config.ts'
import { DevicesStatus } from '../../../src/os/runtime/resources/devices-status.ts'
import { MaintenanceServiceRequest } from '../../../src/os/runtime/resources/maintenance-service.ts'
import { UniqueMachineToken } from '../../../src/os/runtime/resources/unique-machine-token.ts'
import { ApiCertificate } from '../../../src/os/secrets/resources/api-certificate.ts'
import { SiderolinkStatus } from '../../../src/os/siderolink/resources/siderolink.ts'
import { siderolink } from '../../../src/os/siderolink/siderolink.ts'
import { Gateway } from '../../../src/programs/apid/gateway.ts'
import { identityOf } from '../../../src/programs/apid/identity.ts'
import { readers, unary } from '../../../src/rpc/server/method.ts'
import { serveUnix } from '../../../src/rpc/server/server.ts'
import { authority, identityOf as certifiedOf } from '../../programs/apid/nodes.ts'
import { hostKernel } from '../lab/host-kernel.ts'

const [url = '', uuid = '', folder = '', roots = '/dev/null'] = process.argv.slice(2)
const log = createLogger((entry) => console.error(JSON.stringify(entry)))
const kernel = hostKernel(folder, log)
const store = new Store()
const os = new Runtime(store, { log })
const outbound = new Outbound({ publicRoots: '', addedRoots: () => readFileSync(roots, 'utf8'), variables: () => [] })
const parts = siderolink.parts?.({ kernel, outbound, version: { tag: 'v1.13.9' } } as never)
os.register(
  ...[
    observeLinks(kernel),
    observeAddresses(kernel),
    configAddressOrder,
    observeNodeAddresses,
    mergeLinks,
    applyLinks(kernel),
    mergeAddresses,
  ],
  ...[applyAddresses(kernel), configMaintenance, configApiService],
  ...(parts?.controllers ?? []),
)
store.put(DevicesStatus, 'devices', { ready: true })
store.put(NetworkStatus, 'status', { addressReady: true, connectivityReady: true, hostnameReady: true, etcFilesReady: true })
store.put(SystemInformation, 'systeminformation', { uuid })
store.put(UniqueMachineToken, 'unique-machine-token', { token: '' })
store.put(MaintenanceServiceRequest, 'maintenance', {})
const { server } = certifiedOf('127.0.0.1', 'maintenance')
const served = { server: { crt: btoa(server.certificate), key: btoa(server.key) }, acceptedCAs: [{ crt: btoa(authority.crt) }] }
store.put(ApiCertificate, 'api', { ...served, skipVerifyingClientCert: true })
store.put(MachineConfig, 'v1alpha1', `apiVersion: v1alpha1\nkind: SideroLinkConfig\napiUrl: ${url}\n`)
const backend = join(folder, 'machine.sock')
const hostname = unary('machine.MachineService/Hostname', readers, (_, { roles }) => ({ messages: [{ hostname: [...roles].join() }] }))
await serveUnix({ path: backend }, { methods: [hostname], store, log })
const gateway = new Gateway({ host: '', port: 50_000, backend, remotePort: 50_000, log })
os.start()
let printed = ''
for (;;) {
  await os.settled()
  const listenAddress = store.get(APIServiceConfig, 'api')?.spec.listenAddress
  const identity = identityOf({ ...served, skipVerifyingClientCert: true }, [], listenAddress)
  if (identity) await gateway.become(identity).catch((error) => log.warn('serve failed', { error }))
  const status = JSON.stringify({ ...store.get(SiderolinkStatus, 'siderolink-status')?.spec, listenAddress })
  if (status !== printed) console.log(status)
  printed = status
  await Bun.sleep(50)
}
