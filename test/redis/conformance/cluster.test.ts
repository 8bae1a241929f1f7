import { testConformance } from '../../support/redis/conformance.js';

testConformance('cluster');
