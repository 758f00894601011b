import cohorts.fields
import django.core.validators
import django.db.models.deletion
import django.db.models.functions.text
from django.db import migrations, models


class Migration(migrations.Migration):

    initial = True

    dependencies = [
    ]

    operations = [
        migrations.CreateModel(
            name='Cohort',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('name', models.CharField(help_text='1 to 48 lower-case letters, digits and hyphens, not beginning with a hyphen.', max_length=48, unique=True, validators=[django.core.validators.RegexValidator('^[a-z0-9][a-z0-9-]{0,47}\\Z', 'It must be 1 to 48 lower-case letters, digits and hyphens, not beginning with a hyphen.')])),
                ('description', models.TextField(blank=True)),
                ('created_by', models.CharField(editable=False, max_length=150)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
            ],
            options={
                'ordering': ['name'],
                'constraints': [models.CheckConstraint(condition=models.Q(('name__regex', '^[a-z0-9][a-z0-9-]{0,47}\\Z')), name='cohort_name_form'), models.CheckConstraint(condition=models.Q(('name__in', ('add', 'all', 'none')), _negated=True), name='cohort_name_not_reserved', violation_error_message='This name is reserved.')],
            },
        ),
        migrations.CreateModel(
            name='TopologyChange',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('version', models.PositiveBigIntegerField()),
                ('at', models.DateTimeField(auto_now_add=True)),
                ('who', models.CharField(max_length=150)),
                ('action', models.CharField(choices=[('cohort_created', 'Cohort Created'), ('cohort_deleted', 'Cohort Deleted'), ('member_added', 'Member Added'), ('member_removed', 'Member Removed'), ('agent_created', 'Agent Created'), ('agent_deleted', 'Agent Deleted'), ('status_changed', 'Status Changed'), ('channel_member_added', 'Channel Member Added'), ('channel_member_removed', 'Channel Member Removed'), ('moved', 'Moved')], max_length=30)),
                ('cohort', models.CharField(blank=True, max_length=48)),
                ('agent', models.CharField(blank=True, max_length=48)),
                ('detail', models.CharField(blank=True, max_length=200)),
            ],
            options={
                'ordering': ['-id'],
            },
        ),
        migrations.CreateModel(
            name='Agent',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('slug', models.CharField(help_text='1 to 48 lower-case letters, digits and hyphens, not beginning with a hyphen.', max_length=48, unique=True, validators=[django.core.validators.RegexValidator('^[a-z0-9][a-z0-9-]{0,47}\\Z', 'It must be 1 to 48 lower-case letters, digits and hyphens, not beginning with a hyphen.')], verbose_name='id')),
                ('bot_name', models.CharField(help_text='How posts mention it: @BotName.', max_length=48, validators=[django.core.validators.RegexValidator('^[A-Za-z][A-Za-z0-9_]{0,47}\\Z', 'It must be 1 to 48 letters, digits and underscores, beginning with a letter.')])),
                ('represents', models.CharField(blank=True, help_text='The lab, team or customer that it speaks for.', max_length=200)),
                ('status', models.CharField(choices=[('active', 'Active'), ('paused', 'Paused'), ('retired', 'Retired')], default='active', max_length=10)),
                ('public_profile', models.TextField(blank=True, help_text='Markdown; every agent may read it.')),
                ('private_instructions', models.TextField(blank=True, help_text='Markdown; for this agent alone.')),
                ('interests', models.TextField(blank=True, help_text='Words for finding channels; derived from the profile when blank.')),
                ('max_calls', models.PositiveIntegerField(blank=True, null=True, validators=[django.core.validators.MinValueValidator(1)], verbose_name='LLM calls a run')),
                ('max_usd', models.DecimalField(blank=True, decimal_places=4, max_digits=12, null=True, validators=[django.core.validators.MinValueValidator(0)], verbose_name='US dollars a run')),
                ('daily_posts', models.PositiveIntegerField(blank=True, null=True, verbose_name='posts a day')),
                ('calls_per_window', models.PositiveIntegerField(blank=True, null=True, validators=[django.core.validators.MinValueValidator(1)], verbose_name='LLM calls per 600 s and open thread')),
                ('small_model', models.CharField(blank=True, help_text='For sorting and remembering; as the run says when blank.', max_length=100, validators=[django.core.validators.RegexValidator('^[A-Za-z0-9][A-Za-z0-9._:@/-]{0,99}\\Z', 'It must be 1 to 100 letters, digits and . _ : @ / -, beginning with a letter or digit.')])),
                ('large_model', models.CharField(blank=True, help_text='For replies and posts; as the run says when blank.', max_length=100, validators=[django.core.validators.RegexValidator('^[A-Za-z0-9][A-Za-z0-9._:@/-]{0,99}\\Z', 'It must be 1 to 100 letters, digits and . _ : @ / -, beginning with a letter or digit.')])),
                ('slack_token', cohorts.fields.EncryptedField(blank=True, default='')),
                ('slack_token_env', models.CharField(blank=True, help_text='Its name, instead of a stored token.', max_length=100, validators=[django.core.validators.RegexValidator('^(?!SIM_)[A-Z][A-Z0-9_]*SLACK[A-Z0-9_]*\\Z', 'It must be capitals, digits and underscores with SLACK in it, and not begin with SIM_.')], verbose_name='environment variable of the Slack token')),
                ('bot_user_id', models.CharField(blank=True, max_length=32, verbose_name='Slack bot user id')),
                ('created_at', models.DateTimeField(auto_now_add=True)),
            ],
            options={
                'ordering': ['slug'],
                'constraints': [models.CheckConstraint(condition=models.Q(('slug__regex', '^[a-z0-9][a-z0-9-]{0,47}\\Z')), name='agent_slug_form'), models.CheckConstraint(condition=models.Q(('slug__in', ('add', 'all', 'none')), _negated=True), name='agent_slug_not_reserved', violation_error_message='This id is reserved.'), models.CheckConstraint(condition=models.Q(('bot_name__regex', '^[A-Za-z][A-Za-z0-9_]{0,47}\\Z')), name='agent_bot_name_form'), models.CheckConstraint(condition=models.Q(models.Q(('bot_name__iexact', 'channel'), _negated=True), models.Q(('bot_name__iexact', 'everyone'), _negated=True), models.Q(('bot_name__iexact', 'here'), _negated=True)), name='agent_bot_name_not_reserved', violation_error_message='This bot name is reserved.'), models.UniqueConstraint(django.db.models.functions.text.Lower('bot_name'), name='agent_bot_name_unique', violation_error_message='Another agent has this bot name (case does not count).'), models.CheckConstraint(condition=models.Q(('status__in', ['active', 'paused', 'retired'])), name='agent_status_known')],
            },
        ),
        migrations.CreateModel(
            name='Membership',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('added_by', models.CharField(max_length=150)),
                ('added_at', models.DateTimeField(auto_now_add=True)),
                ('agent', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='memberships', to='cohorts.agent')),
                ('cohort', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='memberships', to='cohorts.cohort')),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('cohort', 'agent'), name='membership_unique')],
            },
        ),
        migrations.CreateModel(
            name='TopologyVersion',
            fields=[
                ('id', models.PositiveSmallIntegerField(default=1, primary_key=True, serialize=False)),
                ('version', models.PositiveBigIntegerField()),
            ],
            options={
                'constraints': [models.CheckConstraint(condition=models.Q(('id', 1)), name='topology_version_one_row')],
            },
        ),
        migrations.CreateModel(
            name='AgentVersion',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('number', models.PositiveIntegerField()),
                ('bot_name', models.CharField(max_length=48)),
                ('represents', models.CharField(blank=True, max_length=200)),
                ('public_profile', models.TextField(blank=True)),
                ('private_instructions', models.TextField(blank=True)),
                ('interests', models.TextField(blank=True)),
                ('max_calls', models.PositiveIntegerField(null=True)),
                ('max_usd', models.DecimalField(decimal_places=4, max_digits=12, null=True)),
                ('daily_posts', models.PositiveIntegerField(null=True)),
                ('calls_per_window', models.PositiveIntegerField(null=True)),
                ('small_model', models.CharField(blank=True, default='', max_length=100)),
                ('large_model', models.CharField(blank=True, default='', max_length=100)),
                ('saved_by', models.CharField(max_length=150)),
                ('saved_at', models.DateTimeField(auto_now_add=True)),
                ('agent', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='versions', to='cohorts.agent')),
            ],
            options={
                'ordering': ['agent_id', '-number'],
                'constraints': [models.UniqueConstraint(fields=('agent', 'number'), name='agent_version_unique')],
            },
        ),
        migrations.AddField(
            model_name='cohort',
            name='members',
            field=models.ManyToManyField(related_name='cohorts', through='cohorts.Membership', to='cohorts.agent'),
        ),
    ]
