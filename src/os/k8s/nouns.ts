import { AdmissionControlConfig } from './resources/admission-control-config.ts'
import { APIServerConfig } from './resources/api-server-config.ts'
import { AuditPolicyConfig } from './resources/audit-policy-config.ts'
import { AuthorizationConfig } from './resources/authorization-config.ts'
import { BootstrapManifestsConfig } from './resources/bootstrap-manifests-config.ts'
import { ComponentFallback } from './resources/component-fallback.ts'
import { ComponentStatus } from './resources/component-status.ts'
import { ComponentTrial } from './resources/component-trial.ts'
import { ConfigStatus } from './resources/config-status.ts'
import { ControllerManagerConfig } from './resources/controller-manager-config.ts'
import { Endpoint } from './resources/endpoint.ts'
import { ExtraManifestsConfig } from './resources/extra-manifests-config.ts'
import { KubePrismConfig } from './resources/kube-prism-config.ts'
import { KubePrismEndpoint } from './resources/kube-prism-endpoint.ts'
import { KubePrismStatus } from './resources/kube-prism-status.ts'
import { KubeletConfig } from './resources/kubelet-config.ts'
import { KubeletKubeconfig } from './resources/kubelet-kubeconfig.ts'
import { KubeletLifecycle } from './resources/kubelet-lifecycle.ts'
import { KubeletSpec } from './resources/kubelet-spec.ts'
import { KubernetesAccessConfig } from './resources/kubernetes-access-config.ts'
import { Manifest } from './resources/manifest.ts'
import { ManifestStatus } from './resources/manifest-status.ts'
import { NodeAnnotationSpec } from './resources/node-annotation-spec.ts'
import { NodeCordonedSpec } from './resources/node-cordoned-spec.ts'
import { NodeIP } from './resources/node-ip.ts'
import { NodeIPConfig } from './resources/node-ip-config.ts'
import { NodeLabelSpec } from './resources/node-label-spec.ts'
import { NodeStatus } from './resources/node-status.ts'
import { NodeTaintSpec } from './resources/node-taint-spec.ts'
import { Nodename } from './resources/nodename.ts'
import { SchedulerConfig } from './resources/scheduler-config.ts'
import { SecretStatus } from './resources/secret-status.ts'
import { StaticPod } from './resources/static-pod.ts'
import { StaticPodServerStatus } from './resources/static-pod-server-status.ts'
import { StaticPodStatus } from './resources/static-pod-status.ts'

/** The kinds of resources of this area. */
export const resources = [
  AdmissionControlConfig,
  APIServerConfig,
  AuditPolicyConfig,
  AuthorizationConfig,
  BootstrapManifestsConfig,
  ComponentFallback,
  ComponentStatus,
  ComponentTrial,
  ConfigStatus,
  ControllerManagerConfig,
  Endpoint,
  ExtraManifestsConfig,
  KubePrismConfig,
  KubePrismEndpoint,
  KubePrismStatus,
  KubeletConfig,
  KubeletKubeconfig,
  KubeletLifecycle,
  KubeletSpec,
  KubernetesAccessConfig,
  ManifestStatus,
  Manifest,
  NodeAnnotationSpec,
  NodeCordonedSpec,
  NodeIPConfig,
  NodeIP,
  NodeLabelSpec,
  NodeStatus,
  NodeTaintSpec,
  Nodename,
  SchedulerConfig,
  SecretStatus,
  StaticPodServerStatus,
  StaticPodStatus,
  StaticPod,
]
