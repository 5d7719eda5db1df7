import { AdmissionControlConfig } from './resources/admission-control-config.ts'
import { APIServerConfig } from './resources/api-server-config.ts'
import { AuditPolicyConfig } from './resources/audit-policy-config.ts'
import { AuthorizationConfig } from './resources/authorization-config.ts'
import { BootstrapManifestsConfig } from './resources/bootstrap-manifests-config.ts'
import { ComponentFallback, ComponentStatus, ComponentTrial } from './resources/component.ts'
import { ConfigStatus } from './resources/config-status.ts'
import { ControllerManagerConfig } from './resources/controller-manager-config.ts'
import { Endpoint } from './resources/endpoint.ts'
import { ExtraManifestsConfig } from './resources/extra-manifests-config.ts'
import { KubePrismConfig, KubePrismEndpoint, KubePrismStatus } from './resources/kube-prism.ts'
import { KubeletConfig, KubeletKubeconfig, KubeletLifecycle, KubeletSpec } from './resources/kubelet.ts'
import { KubernetesAccessConfig } from './resources/kubernetes-access-config.ts'
import { Manifest, ManifestStatus } from './resources/manifest.ts'
import { NodeAnnotationSpec, NodeCordonedSpec, NodeLabelSpec, NodeStatus, NodeTaintSpec } from './resources/node.ts'
import { NodeIP, NodeIPConfig } from './resources/node-ip.ts'
import { Nodename } from './resources/nodename.ts'
import { SchedulerConfig } from './resources/scheduler-config.ts'
import { SecretStatus } from './resources/secret-status.ts'
import { StaticPod, StaticPodServerStatus, StaticPodStatus } from './resources/static-pod.ts'

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
