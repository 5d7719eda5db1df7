import type { Area } from '../area.ts'
import { generateClientConfiguration } from './api/client-configuration.ts'
import { issueApiCertificates, issueTrustdCertificates } from './controllers/api.ts'
import { keepEncryptionSalt } from './controllers/encryption-salt.ts'
import { issueEtcdCertificates } from './controllers/etcd.ts'
import { issueApiServerCertificates, issueKubeconfigs } from './controllers/kubernetes.ts'
import {
  configKubelet,
  configKubernetesKeys,
  configMaintenanceRoot,
  configRootEtcd,
  configRootKubernetes,
  configRootOS,
  configSiblingKeys,
} from './controllers/roots.ts'
import { configApiSans, configKubernetesSans, configMaintenanceSans } from './controllers/sans.ts'
import { writeTrustedRoots } from './controllers/trusted-roots.ts'
import { resources } from './resource-types.ts'
import { trustdService } from './services/trustd.ts'

/** Authorities, certificates, keys and tokens. */
export const secrets: Area = {
  name: 'secrets',
  resources,
  parts: (machine) => ({
    methods: [generateClientConfiguration],
    services: [trustdService(machine)],
    controllers: [
      writeTrustedRoots(machine.kernel),
      configRootOS,
      configRootEtcd,
      configRootKubernetes,
      configKubernetesKeys,
      configSiblingKeys,
      configKubelet,
      configMaintenanceRoot,
      configApiSans,
      configKubernetesSans,
      configMaintenanceSans,
      issueApiCertificates(),
      issueTrustdCertificates(),
      issueEtcdCertificates(),
      issueKubeconfigs(),
      issueApiServerCertificates(),
      // A container has no volumes to encrypt.
      ...(machine.kernel.mode === 'container' ? [] : [keepEncryptionSalt(machine.kernel)]),
    ],
  }),
}
