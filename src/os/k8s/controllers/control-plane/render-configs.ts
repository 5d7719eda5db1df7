import { type Controller, defineController, exclusive, weak } from '../../../../cosi/controller.ts'
import { isObject } from '../../../../document/is-object.ts'
import { kubeYaml } from '../../../../kube/yaml.ts'
import { mountId, VolumeMountStatus } from '../../../block/resources/volume-mount.ts'
import type { Mode } from '../../../kernel.ts'
import { auditFolder, configFolder, controlPlane, secretsFolder } from '../../control-plane/arguments.ts'
import { type FileWriter, renderFiles } from '../../rendered-files.ts'
import { AdmissionControlConfig } from '../../resources/admission-control-config.ts'
import { AuditPolicyConfig } from '../../resources/audit-policy-config.ts'
import { AuthorizationConfig } from '../../resources/authorization-config.ts'
import { ConfigStatus } from '../../resources/config-status.ts'
import { SchedulerConfig } from '../../resources/scheduler-config.ts'

/** Writes the configuration files that the control plane's pods read. */
export const renderConfigs = ({ files, mode }: { files: FileWriter; mode?: Mode }): Controller =>
  defineController({
    name: 'k8s.RenderConfigsStaticPodController',
    inputs: {
      admissions: weak(AdmissionControlConfig, { id: 'admission-control' }),
      policies: weak(AuditPolicyConfig, { id: 'audit-policy' }),
      authorizations: weak(AuthorizationConfig, { id: 'authorization' }),
      schedulers: weak(SchedulerConfig, { id: 'kube-scheduler' }),
      disk: weak(VolumeMountStatus, { id: mountId('EPHEMERAL') }),
    },
    outputs: { status: exclusive(ConfigStatus) },
    async reconcile({ admissions, policies, authorizations, schedulers, disk, status }) {
      // On a machine of its own the folder can be written only once its disk is mounted.
      if (mode === 'metal' && !disk.get(mountId('EPHEMERAL'))) return
      const admission = admissions.get('admission-control')
      const policy = policies.get('audit-policy')
      const authorization = authorizations.get('authorization')
      const scheduler = schedulers.get('kube-scheduler')
      if (!admission || !policy || !authorization || !scheduler) return
      const api = controlPlane['kube-apiserver'].uid
      files.mkdirAll(auditFolder, { mode: 0o700, uid: api, gid: api })
      await renderFiles(files, configFolder('kube-apiserver'), api, [
        {
          name: 'admission-control-config.yaml',
          content: kubeYaml({
            apiVersion: 'apiserver.config.k8s.io/v1',
            kind: 'AdmissionConfiguration',
            plugins: admission.spec.config.map(({ name, configuration }) => ({ name, configuration })),
          }),
        },
        { name: 'auditpolicy.yaml', content: kubeYaml(policy.spec.config) },
        {
          name: 'authorization-config.yaml',
          content: kubeYaml({
            apiVersion: 'apiserver.config.k8s.io/v1',
            kind: 'AuthorizationConfiguration',
            authorizers: authorization.spec.config.map(({ type, name, webhook }) => ({
              type,
              name,
              ...(webhook && Object.keys(webhook).length > 0 && { webhook }),
            })),
          }),
        },
      ])
      await renderFiles(files, configFolder('kube-scheduler'), controlPlane['kube-scheduler'].uid, [
        { name: 'scheduler-config.yaml', content: kubeYaml(schedulerConfiguration(scheduler.spec.config)) },
      ])
      // The API server restarts when its files change; the scheduler's pod has a version of its own.
      const version = [admission, policy, authorization].reduce((sum, { metadata }) => sum + metadata.version, 0)
      status.put('static-pods', { ready: true, version: String(version) })
    },
  })

function schedulerConfiguration(given: Record<string, unknown> | undefined): Record<string, unknown> {
  const { clientConnection: connection } = given ?? {}
  return {
    apiVersion: 'kubescheduler.config.k8s.io/v1',
    kind: 'KubeSchedulerConfiguration',
    // The flag of that name takes effect only without a configuration file.
    enableProfiling: false,
    ...given,
    clientConnection: { ...(isObject(connection) && connection), kubeconfig: `${secretsFolder('kube-scheduler')}/kubeconfig` },
  }
}
