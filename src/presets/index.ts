export { apiLimits } from './api-limits.js';
export { loginLimits, TOO_MANY_LOGIN_ATTEMPTS } from './login-limits.js';

export type { ApiLimitsOptions } from './api-limits.js';
export type { LoginLimitsHandler, LoginLimitsOptions } from './login-options.js';
export type { PresetFailureRule, PresetRule, PresetSettings } from './preset-options.js';
