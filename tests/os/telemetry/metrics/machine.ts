/** A machine whose metrics are all there: the kernel of this computer, and resources as a control plane node has them. */
import { systemClock } from '../../../../src/cosi/clock.ts'
import { silent } from '../../../../src/cosi/log.ts'
import { Runtime } from '../../../../src/cosi/runtime.ts'
import { Store } from '../../../../src/cosi/store.ts'
import * as files from '../../../../src/linux/fs/files.ts'
import * as uts from '../../../../src/linux/system/uts.ts'
import { metaTags } from '../../../../src/os/block/meta/meta.ts'
import { EtcdUpkeep } from '../../../../src/os/etcd/resources/etcd-upkeep.ts'
import { ComponentTrial } from '../../../../src/os/k8s/resources/component.ts'
import type { Kernel } from '../../../../src/os/kernel.ts'
import { KubeSpanPeerStatus } from '../../../../src/os/kubespan/resources/kube-span-peer.ts'
import { Diagnostic } from '../../../../src/os/runtime/resources/diagnostic.ts'
import { MachineStatus } from '../../../../src/os/runtime/resources/machine-status.ts'
import { MetaKey } from '../../../../src/os/runtime/resources/meta.ts'
import { ApiCertificate } from '../../../../src/os/secrets/resources/api-certificate.ts'
import { OSRootSecret } from '../../../../src/os/secrets/resources/os-root-secret.ts'
import { AuditLog } from '../../../../src/os/telemetry/audit/audit-log.ts'
import { Calls } from '../../../../src/os/telemetry/calls.ts'
import { observeCalls } from '../../../../src/os/telemetry/controllers/api-call.ts'
import { DeliveryStatus } from '../../../../src/os/telemetry/resources/delivery-status.ts'
import { AdjtimeStatus } from '../../../../src/os/time/resources/adjtime-status.ts'
import { newCA, newCertificate, toBase64 } from '../../../../src/pki/certificate.ts'
import { Supervisor } from '../../../../src/supervise/supervisor.ts'

/** A machine that has just started, with one controller. */
export async function machine() {
  const store = new Store()
  const runtime = new Runtime(store, { log: silent })
  const calls = new Calls(new AuditLog({ write() {} }))
  runtime.register(observeCalls(calls.audit))
  runtime.start()
  await runtime.settled()
  const version = { name: 'Ichor', tag: 'v1.13.0', sha: 'abc', built: '', arch: 'amd64' }
  const config = { state: { trial: undefined as { kind: string } | undefined } }
  const kernel = { files, uts } as Kernel
  return { store, runtime, calls, version, config, supervisor: new Supervisor({ store }), kernel, clock: systemClock, log: silent }
}

const authority = newCA({ subject: { organizations: ['talos'] }, now: new Date('2026-01-01T00:00:00Z'), lifetime: 1000 * 3600_000 })
const base64 = ({ crt, key }: { crt: string; key: string }) => ({ crt: toBase64(crt), key: toBase64(key) })
const server = newCertificate({
  ca: authority,
  subject: { commonName: 'one' },
  usage: ['serverAuth'],
  lifetime: 3600_000,
  now: new Date('2026-01-01T00:00:00Z'),
})

/** Writes the resources of a control plane node with a mesh, a trial of everything, and one receiver that is away. */
export function fill(store: Store): void {
  const peer = { endpoint: '10.0.0.2:51820', label: 'two', receiveBytes: 1, transmitBytes: 2, lastUsedEndpoint: '10.0.0.2:51820' }
  const never = { lastHandshakeTime: '', lastEndpointChange: '' }
  const meta = (tag: number) => `0x${tag.toString(16).padStart(2, '0')}`
  store.put(MachineStatus, 'machine', { stage: 'running', status: { ready: true, unmetConditions: [] } })
  store.put(Diagnostic, 'address-overlap', { message: 'addresses overlap', details: [] })
  store.put(AdjtimeStatus, 'node', {
    offset: '-1.5ms',
    frequencyAdjustmentRatio: 1,
    maxError: '20ms',
    estError: '1ms',
    status: 'PLL',
    constant: 7,
    syncStatus: true,
    state: 'OK',
  })
  store.put(MetaKey, meta(metaTags.upgradeFallback), { value: '{}' })
  store.put(MetaKey, meta(metaTags.failedReleases), { value: '[{"version":"v1.12.9"},{"version":"v1.12.9"}]' })
  store.put(ComponentTrial, 'etcd', { settings: 'a', changed: [], started: true, ready: false, failures: 0, error: '' })
  store.put(ApiCertificate, 'api', { server: base64(server), skipVerifyingClientCert: false })
  store.put(OSRootSecret, 'os', { issuingCA: base64(authority), certSANIPs: [], certSANDNSNames: [], token: 'a' })
  store.put(EtcdUpkeep, 'etcd', {
    state: 'writable',
    members: [
      { name: 'one', size: 4096, inUse: 1024, quota: 8192 },
      { name: 'two', size: 4096, inUse: 2048, quota: 8192 },
    ],
  })
  store.put(DeliveryStatus, 'logs-1', {
    source: 'logs',
    destination: 'tcp://192.0.2.1:5140/',
    connected: false,
    sent: 7,
    behind: 5,
    dropped: 0,
    droppedBytes: 300,
    losing: true,
    lastError: 'connection refused',
    positions: {},
  })
  store.put(KubeSpanPeerStatus, 'two', { ...peer, ...never, state: 'up' })
}
